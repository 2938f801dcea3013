package runner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"scute.dev/eventlog/logtest"
	"scute.dev/mover"
)

// TestPolls checks that polls of silent controllers become less frequent, that two polls are never
// close together, and that the wait after a slow poll is as long as the poll, but not as long as a
// change of the clock.
func TestPolls(t *testing.T) {
	const least, longest, minute = 150 * time.Millisecond, 3 * time.Second, time.Minute
	for name, c := range map[string]struct {
		took      time.Duration
		min, max  time.Duration
		increases bool
	}{
		"fast":                      {0, least, longest, true},
		"slow":                      {20 * time.Second, 20 * time.Second, 20 * time.Second, false},
		"the machine was suspended": {8 * time.Hour, minute, minute, false},
		"the clock went back":       {-8 * time.Hour, least, longest, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, w := logtest.Open(t), newFakeClusters(3)
			w.unresponsive = true
			var passed atomic.Int64
			w.before = func(_ context.Context, step mover.Step) error {
				if step == mover.AwaitAcks {
					passed.Add(int64(c.took))
				}
				return nil
			}
			r := process("one", l, w)
			began := time.Now()
			r.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
			var waits []time.Duration
			r.After = func(d time.Duration) <-chan time.Time {
				passed.Add(-int64(c.took)) // so that no timeout passes
				if waits = append(waits, d); len(waits) == 30 {
					w.locked(func() { w.unresponsive = false })
				}
				over := make(chan time.Time, 1)
				over <- time.Time{}
				return over
			}
			spec := testSpec()
			spec.Acknowledge = mover.Duration(24 * time.Hour)
			if err := r.Request(t.Context(), "go", "user/test", spec); err != nil {
				t.Fatal(err)
			}
			if err := r.Drive(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			for i, d := range waits {
				if d < c.min || d > c.max {
					t.Errorf("wait %d took %s, want %s to %s", i+1, d, c.min, c.max)
				}
			}
			if last := waits[min(len(waits), 30)-1]; c.increases && last < time.Second {
				t.Errorf("wait 30 took %s, want more", last)
			}
		})
	}
}
