package runner

import (
	"runtime"
	"testing"
	"time"
)

// TestRest checks that each of a few acknowledged pauses is observed as often as a single one, and that many share a
// limited rate.
func TestRest(t *testing.T) {
	for pauses, want := range map[int64]time.Duration{1: idlePoll, 30: idlePoll, 31: 15*time.Second + 500*time.Millisecond, 1000: 500 * time.Second} {
		if got := idleInterval(pauses); got != want {
			t.Errorf("rest(%d) = %s, want %s", pauses, got, want)
		}
	}
}

// TestPausesAtRestAreCounted checks that a pause counts as idle while it waits, and no longer after
// an event.
func TestPausesAtRestAreCounted(t *testing.T) {
	r := &Runner{}
	news := make(chan uint64)
	d := &drive{Root: r.root("fleet/a", ""), runner: r, news: news, idle: true}
	ended := make(chan error)
	go func() { ended <- d.sleep(t.Context(), idlePoll) }()
	for r.idle.Load() != 1 {
		runtime.Gosched()
	}
	news <- 1
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := r.idle.Load(); n != 0 {
		t.Errorf("%d pauses count as resting, want 0", n)
	}
}
