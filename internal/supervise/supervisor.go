package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"scute.dev/eventlog"
)

// Supervisor drives everything that is due, a bounded number at once, for as long as it runs. Its fields are set before
// use and not changed.
type Supervisor struct {
	// Noun is what is driven, for log lines.
	Noun string
	// Due lists what Drive has something to do for.
	Due func() []string
	// Drive takes one of them as far as it goes.
	Drive func(ctx context.Context, id string) error
	// Namespace of what has this id.
	Namespace func(id string) string
	// Lost is the error by which Drive says that another process drives it now.
	Lost error
	// Wake is signalled when what is due may have changed.
	Wake <-chan struct{}
	// Limit bounds what is driven at once, most of which waits; it is 1 or more. It is shared by the namespaces as Places
	// are. Places bound what works.
	Limit int
	// Throttle is told of what is due and not driven, as Limit are, and when that has passed. It must not block.
	Throttle func(id string, why Throttled)
	Logger   *slog.Logger
}

// restDelay is how long something whose driving ended is left alone: it may have failed, because of the log for example,
// and the view may not have come as far as its end.
const restDelay = 2 * time.Second

// lookEvery is how often at most Due is asked, however often it is woken: to look at thousands of runs takes milliseconds.
const lookEvery = 50 * time.Millisecond

// Run drives until ctx ends, and returns when all has been let go of.
func (s *Supervisor) Run(ctx context.Context) {
	var (
		wg      sync.WaitGroup
		running = make(map[string]bool)
		driven  = newShare(s.Limit)
		ended   = make(chan string)
		rest    = time.NewTicker(restDelay)
		resting = make(map[string]bool)
		waiting = make(map[string]bool) // for others to end
		looked  time.Time
		look    <-chan time.Time // when Due is asked next; nil when nothing calls for it
	)
	defer rest.Stop()
	start := func() {
		look, looked = nil, time.Now()
		waited := waiting
		waiting = make(map[string]bool)
		for _, id := range s.Due() {
			namespace := s.Namespace(id)
			if running[id] || resting[id] {
				continue
			}
			if !driven.admits(namespace) {
				waiting[id] = true
				s.Throttle(id, s.tooMany())
				continue
			}
			running[id] = true
			s.Throttle(id, Throttled{})
			driven.take(namespace)
			wg.Go(func() {
				s.drive(ctx, id)
				select {
				case ended <- id:
				case <-ctx.Done():
				}
			})
		}
		for id := range waited {
			if !waiting[id] && !running[id] { // it is over, or nobody has to do anything for it
				s.Throttle(id, Throttled{})
			}
		}
	}
	start()
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return
		case <-look:
			start()
			continue
		case <-s.Wake:
		case id := <-ended:
			delete(running, id)
			driven.give(s.Namespace(id))
			resting[id] = true
		case <-rest.C:
			clear(resting)
		}
		if look == nil {
			look = time.After(lookEvery - time.Since(looked))
		}
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
		log.Info(s.Noun + " has come to rest")
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		log.Error("stopping; the last that happened to the "+s.Noun+" is lost", "error", err)
	case ctx.Err() != nil:
		log.Info("stopping; the " + s.Noun + " goes on when a daemon runs again")
	case errors.Is(err, s.Lost), errors.Is(err, eventlog.ErrConflict):
		log.Info("letting go of "+s.Noun, "reason", err)
	default:
		log.Error("driving "+s.Noun+" failed; trying again", "error", err)
	}
}
