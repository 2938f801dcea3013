// Command testbed runs a test bed with a workload cluster until Ctrl-C.
//
//	testbed up
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"scute.dev/test/testbed"
)

func main() { os.Exit(start()) }

func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == "up" {
		return up(ctx)
	}
	return fmt.Errorf("usage: testbed up")
}

func up(ctx context.Context) (err error) {
	bed, err := testbed.Start(ctx, testbed.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if e := bed.Stop(); err == nil {
			err = e
		}
	}()
	blue, green := bed.Side("blue"), bed.Side("green")
	if _, err := blue.CreateCluster(ctx, testbed.Tiny("fleet", "tiny")); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := blue.WaitAvailable(wait, "fleet", "tiny"); err != nil {
		return err
	}
	fmt.Printf("cluster fleet/tiny is available on blue; Ctrl-C ends everything\nKUBECONFIG=%s\nKUBECONFIG=%s\n",
		blue.KubeconfigPath(), green.KubeconfigPath())
	<-ctx.Done()
	return nil
}
