package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
)

// Supervisor drives everything that is due, a bounded number at once, for as long as it runs. Its exported fields are set
// before use and not changed.
type Supervisor struct {
	// Noun is what is driven, for log lines and metrics.
	Noun string
	// IDs lists everything, due or not. It is asked once.
	IDs func() []string
	// Due says that Drive has something to do for one of them after a wait, which may be zero. It is false when only a change
	// can make it due.
	Due func(id string) (wait time.Duration, due bool)
	// Drive takes one of them as far as it goes.
	Drive func(ctx context.Context, id string) error
	// Namespace of what has this id.
	Namespace func(id string) string
	// Limit bounds what is driven at once, most of which waits; it is 1 or more. It is shared by the namespaces as Places
	// are. Places bound what works.
	Limit int
	// Throttle is told of what is due and not driven, as Limit are, and when that has passed. It must not block.
	Throttle func(id string, why Throttled)
	Logger   *slog.Logger

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[string] // nil until Run
	backoff workqueue.TypedRateLimiter[string]
	// rested is when the backoff of what was driven before is over; retained until it is no longer due.
	rested  map[string]time.Time
	driven  share
	waiting map[string]string // for others to end: the namespace by id
	wg      sync.WaitGroup
}

// What was driven is not driven again for the first of these, then for longer each time, up to the last, until it is no
// longer due: its driving may have failed, because of the log for example, and the view may not have come as far as its end.
const firstBackoff, lastBackoff = 500 * time.Millisecond, 10 * time.Second

// Changed says that what has this id may have become due. It does not block. Before Run it does nothing: Run looks at all.
func (s *Supervisor) Changed(id string) {
	s.mu.Lock()
	q := s.queue
	s.mu.Unlock()
	if q != nil {
		q.Add(id)
	}
}

// Run drives until ctx ends, and returns when everything has stopped. It is called once.
func (s *Supervisor) Run(ctx context.Context) {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, lastBackoff)
	q := fair.New(s.Noun+"s", backoff, s.Namespace)
	defer context.AfterFunc(ctx, q.ShutDown)()
	s.mu.Lock()
	s.queue, s.backoff, s.driven = q, backoff, newShare(s.Limit)
	s.rested, s.waiting = make(map[string]time.Time), make(map[string]string)
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
		if ctx.Err() != nil || !s.begin(ctx, id) {
			q.Done(id)
		}
	}
}

// begin drives one of them in a new goroutine if it is due, has rested and is admitted.
func (s *Supervisor) begin(ctx context.Context, id string) (begun bool) {
	wait, due := s.Due(id)
	namespace := s.Namespace(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := time.Until(s.rested[id])
	switch {
	case !due && rest <= 0:
		delete(s.rested, id)
		s.backoff.Forget(id)
		fallthrough
	case !due:
		delete(s.waiting, id)
		s.Throttle(id, Throttled{})
		return false
	case max(wait, rest) > 0:
		s.queue.AddAfter(id, max(wait, rest))
		return false
	case !s.driven.admits(namespace):
		s.waiting[id] = namespace
		s.Throttle(id, s.tooMany())
		return false
	}
	delete(s.waiting, id)
	s.Throttle(id, Throttled{})
	s.driven.take(namespace)
	s.admit()
	s.wg.Go(func() {
		s.drive(ctx, id)
		s.end(id, namespace)
	})
	return true
}

// end lets one of them rest; another one has its place.
func (s *Supervisor) end(id, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.driven.give(namespace)
	rest := s.backoff.When(id)
	s.rested[id] = time.Now().Add(rest)
	s.queue.Done(id)
	s.queue.AddAfter(id, rest)
	s.admit()
}

// admit has the first of each namespace that waits come in again. mu is held.
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

// tooMany says why something is not driven. It says the same however many there are: each change of it would be published.
func (s *Supervisor) tooMany() Throttled {
	return Throttled{TooManyUnfinished, fmt.Sprintf(
		"waits until another %[1]s ends: %[2]d unfinished %[1]ss are driven at once, up to %[3]d where namespaces have less than an equal share",
		s.Noun, s.Limit, 2*s.Limit)}
}

func (s *Supervisor) drive(ctx context.Context, id string) {
	log := s.Logger.With(s.Noun, id)
	log.Info("driving " + s.Noun)
	err := s.Drive(ctx, id)
	switch {
	case err == nil:
		log.Info(s.Noun + " rests")
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		log.Error("stopping; the last that happened to the "+s.Noun+" is lost", "error", err)
	case ctx.Err() != nil:
		log.Info("stopping; the " + s.Noun + " continues when a daemon runs again")
	case errors.Is(err, aggregate.ErrLost), errors.Is(err, eventlog.ErrConflict):
		log.Info("stopped driving "+s.Noun, "reason", err)
	default:
		log.Error("driving "+s.Noun+" failed; trying again", "error", err)
	}
}
