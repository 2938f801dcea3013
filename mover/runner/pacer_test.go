package runner

import (
	"testing"
	"time"

	"scute.dev/mover"
)

// TestLooking checks that the next read is when the remaining objects should have acknowledged, and that reads become
// rarer while nothing changes.
func TestLooking(t *testing.T) {
	l, now := newPacer(), time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	after := func(passed time.Duration, pending int) time.Duration {
		l.begin(now.Add(passed))
		now = now.Add(passed)
		return l.next(mover.AcksRead{Pending: make([]mover.ObjectReason, pending)}, now)
	}
	const ms = time.Millisecond
	if got := after(0, 300); got < pollFirst/2 || got > 2*pollFirst {
		t.Errorf("wait after the first read = %s, want about pollFirst", got)
	}
	for _, c := range []struct {
		passed  time.Duration
		pending int
		want    time.Duration
	}{
		{200 * ms, 290, 400 * ms}, // 10 in 200 ms: they have only started
		{400 * ms, 190, 760 * ms}, // 100 in 400 ms
		{760 * ms, 10, pollFirst}, // 180 in 760 ms
		{150 * ms, 0, pollFirst},  // another read decides whether these are all
	} {
		if got := after(c.passed, c.pending); got != c.want {
			t.Errorf("wait with %d pending after %s = %s, want %s", c.pending, c.passed, got, c.want)
		}
	}
	l.reset()
	longest := time.Duration(0)
	for range 30 {
		longest = max(longest, after(time.Second, 7))
	}
	if longest < pollMax || longest > 2*pollMax {
		t.Errorf("wait for silent controllers = %s, want about %s", longest, pollMax)
	}
	if got := after(pollMax, 6); got != pollMax {
		t.Errorf("wait after one of seven in %s = %s, want %s", pollMax, got, pollMax)
	}
	if got := after(pollMax, 6); got > 2*pollFirst {
		t.Errorf("wait after the first read without changes = %s, want at most 2*pollFirst", got)
	}
}

// TestLargeLooksLeaveTimeToTheControllers checks that the runner waits at least as long as its last read of the objects
// took. For a large move a read occupies the API server for seconds, which the controllers need too.
func TestLargeLooksLeaveTimeToTheControllers(t *testing.T) {
	l, now := newPacer(), time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const took = 20 * time.Second
	after := func(waited time.Duration, pending int) time.Duration {
		l.begin(now.Add(waited))
		now = now.Add(waited + took)
		return l.next(mover.AcksRead{Pending: make([]mover.ObjectReason, pending)}, now)
	}
	for _, c := range []struct {
		waited  time.Duration
		pending int
		want    time.Duration
	}{
		{0, 29_000, took},        // silent
		{took, 28_000, took},     // 1,000 in 40 s: the rest will take long
		{took, 100, took},        // the rest is expected sooner
		{took, 0, pollFirst},     // nothing is pending
		{8 * time.Hour, 7, took}, // the machine was suspended between two reads
	} {
		if got := after(c.waited, c.pending); got != c.want {
			t.Errorf("wait with %d pending after %s = %s, want %s", c.pending, c.waited, got, c.want)
		}
	}
	l.begin(now)
	if got := l.next(mover.AcksRead{Pending: make([]mover.ObjectReason, 5)}, now.Add(8*time.Hour)); got != maxPollDuration {
		t.Errorf("wait after the clock advanced by 8h during a read = %s, want %s", got, maxPollDuration)
	}
	l.begin(now)
	if got := l.next(mover.AcksRead{Pending: make([]mover.ObjectReason, 5)}, now.Add(-8*time.Hour)); got > 2*pollFirst {
		t.Errorf("wait after the clock went back by 8h during a read = %s, want about %s", got, pollFirst)
	}
}
