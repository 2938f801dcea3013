// Command build builds the programs that the tests and the demo run. It writes them to bin/test of
// the checkout, runs one go command for each module, and reports its progress on standard error.
//
//	build demo    the programs of the demo
//	build stack   the programs of the test bed
//	build all     also an S3 server, which the tests of backups run
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"scute.dev/test/assets"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	demo := []assets.Program{assets.Daemon, assets.Ctl, assets.Servers, assets.Demo}
	stack := []assets.Program{assets.Daemon, assets.Ctl, assets.Servers, assets.Faulty}
	sets := map[string][]assets.Program{
		"demo": demo, "stack": stack,
		"all": slices.Concat(stack, []assets.Program{assets.Store}),
	}
	if len(args) != 1 || sets[args[0]] == nil {
		fmt.Fprintln(os.Stderr, "usage: build demo | build stack | build all")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := assets.Build(ctx, os.Stderr, sets[args[0]]...); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	return 0
}
