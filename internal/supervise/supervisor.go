package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/client-go/util/workqueue"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
)

// Supervisor drives all objects that are due, a bounded number at once, until its context ends. Set
// its exported fields before use.
type Supervisor struct {
	// Noun names an object in log lines and metrics.
	Noun string
	// IDs returns the IDs of all objects, due or not. It is called once.
	IDs func() []string
	// Due reports whether Drive has work for an object after wait, which may be zero. due is false
	// if only a change can make the object due.
	Due func(id string) (wait time.Duration, due bool)
	// Drive works on an object until nothing more can be done.
	Drive func(ctx context.Context, id string) error
	// Drivers contains the listeners of driven objects. It also stores that objects beyond Limit
	// are throttled.
	Drivers *Drivers
	// Limit bounds the objects that are driven at once. Most of them wait, but each keeps its state
	// in memory. The default is 256. Namespaces share it as they share Slots, which bound the
	// objects that work.
	Limit  int
	Logger *slog.Logger

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[string] // nil until Run
	backoff workqueue.TypedRateLimiter[string]
	// backoffUntil is when the backoff of an object ends. An entry is kept until its object is no
	// longer due.
	backoffUntil map[string]time.Time
}

// The backoff between two drives of an object that is still due: the drive may have failed, or the
// view may not have applied its result yet.
const initialBackoff, maxBackoff = 500 * time.Millisecond, 10 * time.Second

// Changed notifies the driver of an object of a commit, and enqueues the object, which may have
// become due. It does not block. Before Run, which enqueues all objects, it enqueues nothing.
func (s *Supervisor) Changed(id string, seq uint64) {
	s.Drivers.notify(id, seq)
	s.mu.Lock()
	q := s.queue
	s.mu.Unlock()
	if q != nil {
		q.Add(id)
	}
}

// Run drives objects until ctx ends and all goroutines have stopped. It is called once.
func (s *Supervisor) Run(ctx context.Context) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](initialBackoff, maxBackoff)
	q := fair.NewQueue(s.Noun+"s", limiter, namespaceOf)
	defer context.AfterFunc(ctx, q.ShutDown)()
	s.mu.Lock()
	s.queue, s.backoff, s.backoffUntil = q, limiter, make(map[string]time.Time)
	s.mu.Unlock()
	for _, id := range s.IDs() {
		q.Add(id)
	}
	slots := fair.NewSlots(s.limit())
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		id, over := q.Get()
		if over {
			return
		}
		if ctx.Err() != nil || !s.isDue(id) {
			q.Done(id)
			continue
		}
		slot := slots.Slot(namespaceOf(id))
		slot.Request() // in the order of the queue
		wg.Go(func() {
			defer q.Done(id)
			defer slot.Release()
			if s.acquire(ctx, id, slot) {
				s.drive(ctx, id)
				s.startBackoff(id)
			}
		})
	}
}

func namespaceOf(id string) string {
	namespace, _, _ := strings.Cut(id, "/")
	return namespace
}

// isDue reports whether an object is due now and its backoff has ended. If it becomes due later,
// isDue enqueues it for that time.
func (s *Supervisor) isDue(id string) bool {
	wait, due := s.Due(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := time.Until(s.backoffUntil[id])
	switch {
	case !due && rest <= 0:
		delete(s.backoffUntil, id)
		s.backoff.Forget(id)
	case due && max(wait, rest) > 0:
		s.queue.AddAfter(id, max(wait, rest))
	}
	return due && max(wait, rest) <= 0
}

// acquire waits for a slot. It returns false if the object is no longer due, or ctx has ended.
func (s *Supervisor) acquire(ctx context.Context, id string, slot *fair.Slot) bool {
	if slot.Held() {
		return true
	}
	news, stop := s.Drivers.Subscribe(id)
	defer stop()
	defer s.Drivers.Throttle(id, Throttled{})
	for {
		if _, due := s.Due(id); !due {
			return false
		}
		s.Drivers.Throttle(id, s.throttledByLimit())
		select {
		case <-ctx.Done():
			return false
		case <-slot.Request():
			return ctx.Err() == nil
		case <-news:
		}
	}
}

func (s *Supervisor) startBackoff(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.backoff.When(id)
	s.backoffUntil[id] = time.Now().Add(wait)
	s.queue.AddAfter(id, wait)
}

// throttledByLimit returns why an object waits for the limit. The message omits the current
// numbers, because each change of the message is published.
func (s *Supervisor) throttledByLimit() Throttled {
	return Throttled{TooManyUnfinished, fmt.Sprintf(
		"waiting until another %[1]s ends: at most %[2]d unfinished %[1]ss are driven at once, or %[3]d if namespaces have less than an equal share",
		s.Noun, s.limit(), 2*s.limit())}
}

func (s *Supervisor) limit() int { return cmp.Or(s.Limit, 256) }

func (s *Supervisor) drive(ctx context.Context, id string) {
	log := s.Logger.With(s.Noun, id)
	log.Info("driving " + s.Noun)
	err := s.Drive(ctx, id)
	switch {
	case err == nil:
		log.Info("stopped driving "+s.Noun, "reason", "it has ended or waits")
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		log.Error("stopping; the last event of the "+s.Noun+" is not recorded", "error", err)
	case ctx.Err() != nil:
		log.Info("stopping; the " + s.Noun + " continues when a daemon runs again")
	case errors.Is(err, aggregate.ErrClaimLost), errors.Is(err, eventlog.ErrConflict):
		log.Info("stopped driving "+s.Noun, "reason", err)
	default:
		log.Error("driving "+s.Noun+" failed; retrying", "error", err)
	}
}

// Drivers is shared by the goroutines that drive objects of one kind. It notifies them of commits,
// and stores why objects are throttled. The zero value works. It is safe for concurrent use; set
// its fields before use.
type Drivers struct {
	// Changed is called when Throttled of an object has changed. It must not block and may be nil.
	Changed func(id string)
	// After is like time.After, which is the default.
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

// Sleep waits for a duration, or until news receives a sequence above seq, that is, a commit by
// another process, such as an operator's decision.
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

// Subscribe returns a channel that receives the sequence of the newest commit about an ID. Each ID
// has at most one listener.
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

// notify passes the sequence of a commit to the listener of an ID, if there is one. It does not
// block. The caller must pass sequences in order.
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

// Acquire acquires a slot for an object, which is throttled while it waits. waited reports whether
// the slot was not free at once.
func (d *Drivers) Acquire(ctx context.Context, id string, slot *fair.Slot, reason string) (waited bool, err error) {
	if slot.Request(); slot.Held() {
		return false, nil
	}
	d.Throttle(id, Throttled{NoFreePlace, "waiting for a free slot: " + reason})
	defer d.Throttle(id, Throttled{})
	return true, slot.Acquire(ctx)
}

// Throttled returns why an object is throttled; zero if it is not.
func (d *Drivers) Throttled(id string) Throttled {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.throttled[id]
}

// Throttle stores why an object is throttled, or that it is not, if why is zero.
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

// NewBackOff returns a backoff that begins with first, grows to longest, and never ends.
func NewBackOff(first, longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMaxInterval(longest),
		backoff.WithMultiplier(1.3), backoff.WithMaxElapsedTime(0))
}
