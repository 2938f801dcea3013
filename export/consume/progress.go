package consume

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	saveInterval = 5 * time.Second // default
	saveTimeout  = 10 * time.Second
)

// Progress is the position of a running consumer. It is saved periodically.
type Progress struct {
	store  Store
	logger *slog.Logger

	mu       sync.Mutex
	position Position
	saved    Position // used only by the goroutine that saves
}

// Resume returns a Progress that begins at the saved position. If that is a position of another
// log, it begins at the beginning of log.
func Resume(ctx context.Context, log Log, store Store, logger *slog.Logger) (*Progress, error) {
	p, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	if id := log.ID(); p.LogID != id {
		switch {
		case p.LogID != "":
			logger.Warn("the position is of another event log: reading this log from its beginning", "position", p.LogID, "log", id)
		case p.Sequence > 0:
			return nil, fmt.Errorf("the position has the sequence %d and no log ID: add the ID of the log, which is %s", p.Sequence, id)
		}
		p = Position{LogID: id}
	}
	return &Progress{store: store, logger: logger, position: p, saved: p}, nil
}

// Position returns the current position.
func (s *Progress) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

// Advance sets the position.
func (s *Progress) Advance(p Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position = p
}

// SaveEvery saves the position at each interval; 0 means 5 s. Before each save it calls before,
// which may be nil. If before fails, it skips the save. The returned function stops SaveEvery, and
// saves the position a last time.
func (s *Progress) SaveEvery(ctx context.Context, interval time.Duration, before func() error) (stop func() error) {
	sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var saving sync.WaitGroup
	saving.Go(func() {
		tick := time.NewTicker(cmp.Or(interval, saveInterval))
		defer tick.Stop()
		for {
			select {
			case <-sctx.Done():
				return
			case <-tick.C:
				if before != nil && before() != nil {
					continue
				}
				if err := s.save(sctx); err != nil && sctx.Err() == nil {
					s.logger.Warn("saving the position in the event log failed; retrying", "error", err)
				}
			}
		}
	})
	return func() error {
		cancel()
		saving.Wait()
		return s.save(context.WithoutCancel(ctx))
	}
}

// Reset saves the beginning of the log as the position.
func (s *Progress) Reset(ctx context.Context) error {
	s.Advance(Position{LogID: s.Position().LogID})
	return s.save(ctx)
}

func (s *Progress) save(ctx context.Context) error {
	at := s.Position()
	if at == s.saved {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := s.store.Save(ctx, at); err != nil {
		return err
	}
	s.saved = at
	return nil
}
