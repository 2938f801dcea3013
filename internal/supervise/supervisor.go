package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
)

// Supervisor drives all objects that are due, a bounded number at once, until its context ends. Its exported fields are set before use and not
// changed.
type Supervisor struct {
	// Noun names an object in log lines and metrics.
	Noun string
	// IDs returns the IDs of all objects, due or not. It is called once.
	IDs func() []string
	// Due reports whether Drive has work for an object after a wait, which may be zero. It returns false if only a change can make the object due.
	Due func(id string) (wait time.Duration, due bool)
	// Drive works on an object until nothing more can be done.
	Drive func(ctx context.Context, id string) error
	// Drivers has the listeners of the objects that are driven. Objects that Limit keeps from being driven are throttled there.
	Drivers *Drivers
	// Limit bounds the number of objects that are driven at once, most of which wait; it is 1 or more. Namespaces share it as they share Slots, which
	// bound the objects that work.
	Limit  int
	Logger *slog.Logger

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[string] // nil until Run
	backoff workqueue.TypedRateLimiter[string]
	// backoffUntil is when the backoff of an object ends that was driven before. It is retained until the object is no longer due.
	backoffUntil map[string]time.Time
}

// The backoff between two drives of an object, until it is no longer due: the drive may have failed, for example because of the log, and the view
// may not have applied its result yet.
const initialBackoff, maxBackoff = 500 * time.Millisecond, 10 * time.Second

// Changed notifies the driver of an object of a commit, and enqueues the object, because it may have become due. It does not block. Before Run it
// enqueues nothing, because Run enqueues all objects.
func (s *Supervisor) Changed(id string, seq uint64) {
	s.Drivers.notify(id, seq)
	s.mu.Lock()
	q := s.queue
	s.mu.Unlock()
	if q != nil {
		q.Add(id)
	}
}

// Run drives objects until ctx ends, and returns when all goroutines have stopped. It is called once.
func (s *Supervisor) Run(ctx context.Context) {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](initialBackoff, maxBackoff)
	q := fair.NewQueue(s.Noun+"s", backoff, namespaceOf)
	defer context.AfterFunc(ctx, q.ShutDown)()
	s.mu.Lock()
	s.queue, s.backoff, s.backoffUntil = q, backoff, make(map[string]time.Time)
	s.mu.Unlock()
	for _, id := range s.IDs() {
		q.Add(id)
	}
	slots := NewSlots(s.Limit)
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

// namespaceOf returns the namespace of an object, with which its ID begins.
func namespaceOf(id string) string {
	namespace, _, _ := strings.Cut(id, "/")
	return namespace
}

// isDue reports whether an object is due now and its backoff has ended. It enqueues an object that becomes due later for that time.
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
func (s *Supervisor) acquire(ctx context.Context, id string, slot *Slot) bool {
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

// startBackoff enqueues an object for the end of its backoff.
func (s *Supervisor) startBackoff(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.backoff.When(id)
	s.backoffUntil[id] = time.Now().Add(wait)
	s.queue.AddAfter(id, wait)
}

// throttledByLimit returns why an object is not driven. The message has no current numbers, because each change of it would be published.
func (s *Supervisor) throttledByLimit() Throttled {
	return Throttled{TooManyUnfinished, fmt.Sprintf(
		"waiting until another %[1]s ends: at most %[2]d unfinished %[1]ss are driven at once, or %[3]d if namespaces have less than an equal share",
		s.Noun, s.Limit, 2*s.Limit)}
}

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
