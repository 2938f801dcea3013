package supervise

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Drivers is what those that drive things of one kind share: news of the log for each, and why each starts nothing. The zero
// value is ready for use. It is safe for concurrent use; its fields are set before and not changed.
type Drivers struct {
	// Changed is called when Throttled of one has changed; it must not block. May be nil.
	Changed func(id string)
	// After fires when a time has passed; nil is time.After.
	After func(time.Duration) <-chan time.Time

	mu        sync.Mutex
	listeners map[string]chan uint64
	throttled map[string]Throttled
}

// Alarm fires when a time has passed.
func (d *Drivers) Alarm(after time.Duration) <-chan time.Time {
	if d.After != nil {
		return d.After(after)
	}
	return time.After(after)
}

// Sleep waits, and no longer when news is of a commit after seq: an operator may have decided otherwise. Earlier commits are the
// driver's own.
func (d *Drivers) Sleep(ctx context.Context, wait time.Duration, news <-chan uint64, seq uint64) error {
	if wait <= 0 {
		return ctx.Err()
	}
	over := d.Alarm(wait)
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

// Listen begins to listen for news of an id: news has the sequence of the newest commit. At most one listens at a time.
func (d *Drivers) Listen(id string) (news <-chan uint64, stop func()) {
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

// News says that the log holds a commit about an id: a driver that waits takes it in at once, an operator's decision above
// all. It does not block. Sequences come in their order.
func (d *Drivers) News(id string, seq uint64) {
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

// Throttled says whether one waits for others, and for what.
func (d *Drivers) Throttled(id string) Throttled {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.throttled[id]
}

// Throttle says why one starts nothing, or with the zero value that it is not throttled.
func (d *Drivers) Throttle(id string, why Throttled) {
	if d.throttle(id, why) && d.Changed != nil {
		d.Changed(id)
	}
}

func (d *Drivers) throttle(id string, why Throttled) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case why == d.throttled[id]:
		return false
	case why == Throttled{}:
		delete(d.throttled, id)
	case d.throttled == nil:
		d.throttled = map[string]Throttled{id: why}
	default:
		d.throttled[id] = why
	}
	return true
}

// Throttled says why something starts nothing at the moment although it could. The zero value is not throttled.
type Throttled struct {
	// Reason is one of the constants below.
	Reason  string
	Message string
}

// The reasons for which something is throttled.
const (
	// NoFreePlace: as many work as may at once.
	NoFreePlace = "NoFreePlace"
	// TooManyUnfinished: as many are driven as may be at once, most of which wait.
	TooManyUnfinished = "TooManyUnfinished"
	// QuotaExceeded: the namespace has appended as much to the log as it may.
	QuotaExceeded = "QuotaExceeded"
	// NotAdopted: a client wrote the definition, inputs or outputs to the log, and no resource adopts them.
	NotAdopted = "NotAdopted"
)

// Quota says which limit of the log keeps a namespace from starting anything, and until when; "" for none. Nil is without a limit.
type Quota func(namespace string) string

// LookAgain is when something is looked at again that the quota of its namespace keeps from being started.
const LookAgain = time.Minute

// Throttled is zero below the quota.
func (q Quota) Throttled(namespace string) Throttled {
	if q == nil {
		return Throttled{}
	}
	if why := q(namespace); why != "" {
		return Throttled{Reason: QuotaExceeded, Message: why}
	}
	return Throttled{}
}

// Pace is how long to wait before one looks or tries again: first, then less and less often, without an end.
func Pace(first, longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMaxInterval(longest),
		backoff.WithMultiplier(1.3), backoff.WithMaxElapsedTime(0))
}
