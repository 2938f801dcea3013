package catchup

import (
	"sync"
	"time"
)

const (
	// Pause is the shortest time between two looks.
	Pause = 100 * time.Millisecond
	// longest bounds the time between two looks, and with it what the looks of many objects cost.
	longest = 10 * time.Second
	// share of the time waited so far that the next pause takes.
	share = 10
)

// Wait is the wait of one controller. The zero value is ready for use, from any goroutine.
type Wait struct {
	mu    sync.Mutex
	since time.Time
	now   func() time.Time // nil: time.Now
}

// Later says whether a reconcile has to wait until caughtUp is closed, and for how long before it looks again: the longer
// it has lasted, the longer.
func (w *Wait) Later(caughtUp <-chan struct{}) (pause time.Duration, wait bool) {
	select {
	case <-caughtUp:
		return 0, false
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now == nil {
		w.now = time.Now
	}
	now := w.now()
	if w.since.IsZero() {
		w.since = now
	}
	return min(max(now.Sub(w.since)/share, Pause), longest), true
}
