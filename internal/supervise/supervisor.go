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
	driven       share
	waiting      map[string]string // the namespaces of the objects that wait for others to end, by ID
	wg           sync.WaitGroup
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
	s.queue, s.backoff, s.driven = q, backoff, newShare(s.Limit)
	s.backoffUntil, s.waiting = make(map[string]time.Time), make(map[string]string)
	s.mu.Unlock()
	for _, id := range s.IDs() {
		q.Add(id)
	}
	for {
		id, over := q.Get()
		if over {
			s.wg.Wait()
			return
		}
		if ctx.Err() != nil || !s.startDrive(ctx, id) {
			q.Done(id)
		}
	}
}

// namespaceOf returns the namespace of an object, with which its ID begins.
func namespaceOf(id string) string {
	namespace, _, _ := strings.Cut(id, "/")
	return namespace
}

// startDrive drives an object in a new goroutine if it is due, its backoff has ended, and its namespace may drive another one.
func (s *Supervisor) startDrive(ctx context.Context, id string) (begun bool) {
	wait, due := s.Due(id)
	namespace := namespaceOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := time.Until(s.backoffUntil[id])
	switch {
	case !due && rest <= 0:
		delete(s.backoffUntil, id)
		s.backoff.Forget(id)
		fallthrough
	case !due:
		delete(s.waiting, id)
		s.Drivers.Throttle(id, Throttled{})
		return false
	case max(wait, rest) > 0:
		s.queue.AddAfter(id, max(wait, rest))
		return false
	case !s.driven.admits(namespace):
		s.waiting[id] = namespace
		s.Drivers.Throttle(id, s.throttledByLimit())
		return false
	}
	delete(s.waiting, id)
	s.Drivers.Throttle(id, Throttled{})
	s.driven.acquire(namespace)
	s.admit()
	s.wg.Go(func() {
		s.drive(ctx, id)
		s.finishDrive(id, namespace)
	})
	return true
}

// finishDrive starts the backoff of an object, and releases its place.
func (s *Supervisor) finishDrive(id, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.driven.release(namespace)
	rest := s.backoff.When(id)
	s.backoffUntil[id] = time.Now().Add(rest)
	s.queue.Done(id)
	s.queue.AddAfter(id, rest)
	s.admit()
}

// admit enqueues the first waiting object of each namespace. mu is held.
func (s *Supervisor) admit() {
	first := make(map[string]string)
	for id, namespace := range s.waiting {
		if before, ok := first[namespace]; !ok || id < before {
			first[namespace] = id
		}
	}
	for _, id := range first {
		s.queue.Add(id)
	}
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
