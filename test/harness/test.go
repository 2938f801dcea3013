package harness

import (
	"context"
	"testing"
	"time"

	"scute.dev/test/scuted"
)

// look is how long Await waits between two looks.
const look = 200 * time.Millisecond

// Deadline bounds one test.
func Deadline(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Await waits until is returns "". What it returns says what is missing.
func Await(ctx context.Context, t testing.TB, what string, is func() string) {
	t.Helper()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		missing := is()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %v: %s", what, ctx.Err(), missing)
		case <-tick.C:
		}
	}
}

// Daemon starts a daemon that is stopped at the end of the test, if it still runs. Without a folder for its log it gets a new one.
func Daemon(t testing.TB, on *scuted.Installation, o scuted.DaemonOptions) *scuted.Daemon {
	t.Helper()
	if o.LogDir == "" {
		dir, err := on.NewLogDir()
		Must(t, err)
		o.LogDir = dir
	}
	d, err := on.Start(o)
	Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := d.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}
