package e2e

import (
	"context"
	"os"
	"testing"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// suite has what the tests of this package share, because starting two management clusters is expensive.
type suite struct {
	bed         *testbed.Bed
	programs    scuted.Programs
	blue, green *scuted.Installation
}

// shared is set once by TestMain.
var shared = new(suite) //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "e2e", testbed.Options{Audit: true}, func(ctx context.Context, bed *testbed.Bed) (err error) {
		shared.bed = bed
		shared.programs, shared.blue, shared.green, err = harness.Install(ctx, bed, "webhook.url=https://webhook.invalid", "tracing.endpoint=https://collector.invalid") // for the daemon's roles
		return err
	}))
}

// cluster creates a workload cluster on a side and waits until it is available.
func (s *suite) cluster(ctx context.Context, t *testing.T, on *scuted.Installation, c testbed.Cluster) {
	t.Helper()
	_, err := on.Side.CreateCluster(ctx, c)
	harness.Must(t, err)
	harness.Must(t, on.Side.WaitAvailable(ctx, c.Namespace, c.Name))
}
