package supervise

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Drivers is shared by the goroutines that drive objects of one kind. It notifies them of commits, and holds the reason for which an object is
// throttled. The zero value is ready for use. It is safe for concurrent use; its fields are set before use and not changed.
type Drivers struct {
	// Changed is called when Throttled of an object has changed; it must not block. May be nil.
	Changed func(id string)
	// After returns a channel that receives after a duration; nil is time.After.
	After func(time.Duration) <-chan time.Time

	mu        sync.Mutex
	listeners map[string]chan uint64
	throttled map[string]Throttled
}

// Timer returns a channel that receives after a duration.
func (d *Drivers) Timer(after time.Duration) <-chan time.Time {
	if d.After != nil {
		return d.After(after)
	}
	return time.After(after)
}

// Sleep waits for a duration, or until news receives the sequence of a commit after seq, which may be an operator's decision. Commits up to seq are
// the driver's.
func (d *Drivers) Sleep(ctx context.Context, wait time.Duration, news <-chan uint64, seq uint64) error {
	if wait <= 0 {
		return ctx.Err()
	}
	over := d.Timer(wait)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return nil
		case newest := <-news:
			if newest > seq {
				return nil
			}
		}
	}
}

// Subscribe subscribes to the commits about an ID: news receives the sequence of the newest one. Each ID has at most one listener.
func (d *Drivers) Subscribe(id string) (news <-chan uint64, stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listeners == nil {
		d.listeners = make(map[string]chan uint64)
	}
	own := make(chan uint64, 1)
	d.listeners[id] = own
	return own, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.listeners[id] == own {
			delete(d.listeners, id)
		}
	}
}

// notify notifies the listener of an ID of a commit, for example of an operator's decision. It does not block. The caller passes sequences in order.
func (d *Drivers) notify(id string, seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	listener := d.listeners[id]
	if listener == nil {
		return
	}
	select {
	case <-listener: // an older one
	default:
	}
	listener <- seq
}

// Acquire acquires a slot for an object. While it waits, the object is throttled for a reason. waited reports whether the slot was not free at once.
func (d *Drivers) Acquire(ctx context.Context, id string, slot *Slot, reason string) (waited bool, err error) {
	if slot.Request(); slot.Held() {
		return false, nil
	}
	d.Throttle(id, Throttled{NoFreePlace, "waiting for a free slot: " + reason})
	defer d.Throttle(id, Throttled{})
	return true, slot.Acquire(ctx)
}

// Throttled returns why an object is throttled; the zero value if it is not.
func (d *Drivers) Throttled(id string) Throttled {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.throttled[id]
}

// Throttle sets why an object is throttled; the zero value means that it is not.
func (d *Drivers) Throttle(id string, why Throttled) {
	d.mu.Lock()
	changed := why != d.throttled[id]
	if d.throttled == nil {
		d.throttled = make(map[string]Throttled)
	}
	if d.throttled[id] = why; why == (Throttled{}) {
		delete(d.throttled, id)
	}
	d.mu.Unlock()
	if changed && d.Changed != nil {
		d.Changed(id)
	}
}

// Throttled is the reason for which an object that could start work does not. The zero value means that it is not throttled.
type Throttled struct {
	// Reason is one of the constants below.
	Reason  string
	Message string
}

// The reasons for which an object is throttled.
const (
	// NoFreePlace means that the limit of concurrent work is reached.
	NoFreePlace = "NoFreePlace"
	// TooManyUnfinished means that the limit of driven objects is reached, most of which wait.
	TooManyUnfinished = "TooManyUnfinished"
	// QuotaExceeded means that the namespace has used up its quota of the log.
	QuotaExceeded = "QuotaExceeded"
	// NotAdopted means that a client wrote the definition, inputs or outputs to the log, and no resource adopts them.
	NotAdopted = "NotAdopted"
)

// Quota returns a text that names the limit of the log that keeps a namespace from starting work,
// and the time at which it ends, or "". Nil means that there is no limit.
type Quota func(namespace string) string

// RecheckInterval is the delay after which an object is checked again that the quota of its namespace keeps from starting.
const RecheckInterval = time.Minute

// Throttled returns why the namespace may start no work; the zero value below the quota.
func (q Quota) Throttled(namespace string) Throttled {
	if q == nil {
		return Throttled{}
	}
	if why := q(namespace); why != "" {
		return Throttled{Reason: QuotaExceeded, Message: why}
	}
	return Throttled{}
}

// NewBackOff returns a backoff between polls or retries: it begins with first, grows to longest, and never ends.
func NewBackOff(first, longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMaxInterval(longest),
		backoff.WithMultiplier(1.3), backoff.WithMaxElapsedTime(0))
}
