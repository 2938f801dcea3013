package runner

import (
	"runtime"
	"testing"
	"time"
)

// TestRest: a few pauses at rest are looked at as often as one; many share the looks.
func TestRest(t *testing.T) {
	for pauses, want := range map[int64]time.Duration{1: lookSlow, 30: lookSlow, 31: 15*time.Second + 500*time.Millisecond, 1000: 500 * time.Second} {
		if got := rest(pauses); got != want {
			t.Errorf("of %d, each waits %s, want %s", pauses, got, want)
		}
	}
}

// TestPausesAtRestAreCounted: one counts as long as it waits, and no longer when something has happened.
func TestPausesAtRestAreCounted(t *testing.T) {
	r := &Runner{}
	news := make(chan uint64)
	d := &drive{Root: r.root("fleet/a", ""), runner: r, news: news, atRest: true}
	ended := make(chan error)
	go func() { ended <- d.sleep(t.Context(), lookSlow) }()
	for r.resting.Load() != 1 {
		runtime.Gosched()
	}
	news <- 1
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := r.resting.Load(); n != 0 {
		t.Errorf("%d pauses are at rest, want 0", n)
	}
}
