// Command testbed builds the binaries of the test bed, or runs one for a look around.
//
//	testbed build   build etcd, kube-apiserver and kube-controller-manager if they were never built
//	testbed up      run two management clusters with a workload cluster on the first, until Ctrl-C
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"scute.dev/test/assets"
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
	if len(args) == 1 {
		switch args[0] {
		case "build":
			return build(ctx)
		case "up":
			return up(ctx)
		}
	}
	return fmt.Errorf("usage: testbed build | testbed up")
}

func build(ctx context.Context) error {
	binaries, err := assets.Find(ctx, os.Stderr)
	if err != nil {
		return err
	}
	store, err := assets.FindStore(ctx, os.Stderr)
	if err != nil {
		return err
	}
	restorers, err := assets.FindRestorers(ctx, os.Stderr)
	if err != nil {
		return err
	}
	for _, path := range append([]string{binaries.Etcd, binaries.APIServer, binaries.ControllerManager, store}, restorers...) {
		fmt.Println(path)
	}
	return nil
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
