package resource

import (
	"testing"
	"time"
)

// TestLater checks that a reconcile is retried often at first and less often later, and continues as soon as the view
// has caught up.
func TestLater(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	now := start
	w := Wait{now: func() time.Time { return now }}
	caughtUp := make(chan struct{})
	for _, c := range []struct{ after, want time.Duration }{
		{0, MinInterval}, {500 * time.Millisecond, MinInterval}, {20 * time.Second, 2 * time.Second}, {time.Hour, maxInterval},
	} {
		now = start.Add(c.after)
		if got, wait := w.Delay(caughtUp); got != c.want || !wait {
			t.Errorf("after %s: Later = %s, %t; want %s", c.after, got, wait, c.want)
		}
	}
	close(caughtUp)
	if got, wait := w.Delay(caughtUp); got != 0 || wait {
		t.Errorf("caught up: Later = %s, %t", got, wait)
	}
}
