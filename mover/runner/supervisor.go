package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"scute.dev/eventlog"
)

// Supervisor keeps every unfinished move of a view driven, a bounded number at once, for as long as it runs.
type Supervisor struct {
	Runner *Runner
	Moves  *Moves
	// Wake is signalled when the view has changed.
	Wake <-chan struct{}
	// Limit bounds the moves driven at once. Default 4.
	Limit int
}

// restDelay is how long a move whose driving failed, because of the log for example, is left alone.
const restDelay = 2 * time.Second

// Run drives moves until ctx ends, and returns when all of them have let go.
func (s *Supervisor) Run(ctx context.Context) {
	limit := s.Limit
	if limit <= 0 {
		limit = 4
	}
	var (
		wg      sync.WaitGroup
		running = make(map[string]bool)
		ended   = make(chan string)
		rest    = time.NewTicker(restDelay)
		resting = make(map[string]bool)
	)
	defer rest.Stop()
	start := func() {
		for _, id := range s.Moves.Due() {
			if running[id] || resting[id] || len(running) >= limit {
				continue
			}
			running[id] = true
			wg.Go(func() {
				s.drive(ctx, id)
				select {
				case ended <- id:
				case <-ctx.Done():
				}
			})
		}
	}
	for {
		start()
		select {
		case <-ctx.Done():
			wg.Wait()
			return
		case <-s.Wake:
		case id := <-ended:
			delete(running, id)
			resting[id] = true
		case <-rest.C:
			clear(resting)
		}
	}
}

func (s *Supervisor) drive(ctx context.Context, id string) {
	log := s.Runner.Logger.With("move", id)
	log.Info("driving move")
	err := s.Runner.Drive(ctx, id)
	switch {
	case err == nil:
		log.Info("move has come to rest")
	case ctx.Err() != nil:
		log.Info("stopping; the move goes on when a daemon runs again")
	case errors.Is(err, ErrLost), errors.Is(err, eventlog.ErrConflict):
		log.Info("letting go of move", "reason", err)
	default:
		log.Error("driving move failed; trying again", "error", err)
	}
}
