package resource

import (
	"sync"
	"time"
)

const (
	// MinInterval is the shortest interval between two checks.
	MinInterval = 100 * time.Millisecond
	// maxInterval bounds the interval between two checks. A longer interval for many objects costs less.
	maxInterval = 10 * time.Second
	// intervalDivisor divides the time waited so far: the next pause lasts a tenth of it.
	intervalDivisor = 10
)

// Wait is the wait of one controller. The zero value is ready for use, and it is safe for concurrent use.
type Wait struct {
	mu    sync.Mutex
	since time.Time
	now   func() time.Time // nil is time.Now
}

// Delay reports whether a reconcile must wait until caughtUp is closed. pause is the time until the next check, which grows with the time waited so
// far.
func (w *Wait) Delay(caughtUp <-chan struct{}) (pause time.Duration, wait bool) {
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
	return min(max(now.Sub(w.since)/intervalDivisor, MinInterval), maxInterval), true
}
