package crash

import (
	"context"
	"fmt"
	"os"
	"testing"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// suite has what the tests share, because starting two management clusters is expensive.
type suite struct {
	bed         *testbed.Bed
	programs    scuted.Programs
	blue, green *scuted.Installation
}

// shared is set once by TestMain.
var shared = new(suite) //nolint:gochecknoglobals // a test main has no other way to hand on what it made

// TestMain runs the tests, or clusterctl as a separate process that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == clusterctlMove {
		if err := move(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Run(m, "crash", testbed.Options{}, func(ctx context.Context, bed *testbed.Bed) (err error) {
		shared.bed = bed
		shared.programs, shared.blue, shared.green, err = harness.Install(ctx, bed)
		return err
	}))
}
