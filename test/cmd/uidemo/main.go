// Command uidemo shows the examples, and saved histories of real clusters, with scutectl ui. It
// needs no cluster. `make ui-demo` runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"scute.dev/test/histories"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "uidemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: uidemo SCUTECTL [FLAG...], with flags of scutectl ui")
	}
	dir, err := os.MkdirTemp("", "scute-ui-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := histories.Demo(ctx, dir, args[0]); err != nil {
		return err
	}
	ui := exec.CommandContext(ctx, args[0], append([]string{"ui", "--local"}, args[1:]...)...)
	ui.Dir, ui.Stdout, ui.Stderr = dir, os.Stdout, os.Stderr
	ui.Cancel = func() error { return ui.Process.Signal(os.Interrupt) }
	if err := ui.Run(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
