package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// suite is what all tests of this package share: starting two management clusters is what costs.
type suite struct {
	bed         *testbed.Bed
	programs    scuted.Programs
	blue, green *scuted.Installation
}

// shared is set once by TestMain.
var shared *suite //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), testbed.StartTimeout)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	shared = s
	defer func() {
		if code != 0 {
			s.bed.Keep()
		}
		if err := s.bed.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: stopping the test bed:", err)
			code = 1
		}
	}()
	return m.Run()
}

func start(ctx context.Context) (*suite, error) {
	programs, err := scuted.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	bed, err := testbed.Start(ctx, testbed.Options{Audit: true})
	if err != nil {
		return nil, err
	}
	s := &suite{bed: bed, programs: programs}
	if s.blue, err = scuted.Install(ctx, bed.Side("blue"), programs); err == nil {
		s.green, err = scuted.Install(ctx, bed.Side("green"), programs)
	}
	if err != nil {
		bed.Keep()
		return nil, errors.Join(err, bed.Stop())
	}
	return s, nil
}

// deadline bounds one test.
func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster makes a workload cluster on a side and waits until it runs.
func (s *suite) cluster(ctx context.Context, t *testing.T, on *scuted.Installation, c testbed.Cluster) {
	t.Helper()
	_, err := on.Side.CreateCluster(ctx, c)
	must(t, err)
	must(t, on.Side.WaitAvailable(ctx, c.Namespace, c.Name))
}

// daemon starts a daemon that is stopped at the end of the test.
func daemon(t *testing.T, on *scuted.Installation, o scuted.DaemonOptions) *scuted.Daemon {
	t.Helper()
	if o.LogDir == "" {
		dir, err := on.NewLogDir()
		must(t, err)
		o.LogDir = dir
	}
	d, err := on.Start(o)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}
