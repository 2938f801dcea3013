package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"scute.dev/eventlog"
)

const (
	// saveInterval is the default interval at which a position is saved.
	saveInterval = 5 * time.Second
	// saveTimeout bounds one save.
	saveTimeout = 10 * time.Second
)

// Log is what a consumer needs of a log. *eventlog.Log implements it.
type Log interface {
	// ID returns the ID of the log.
	ID() string
	// Follow calls fn with every commit after a sequence, in order, until ctx ends, fn fails or the log is damaged.
	Follow(ctx context.Context, after uint64, fn func(eventlog.Record) error) error
}

// Consumer delivers the events of a log to one receiver.
type Consumer struct {
	Log   Log
	Store Store
	// Deliver receives each event in order. If it fails, the consumer stops, and the event counts as not delivered.
	Deliver func(ctx context.Context, e eventlog.CloudEvent) error
	// Delivered is called with the sequence up to which all events were delivered; may be nil.
	Delivered func(seq uint64)
	// SaveInterval is how often the position is saved while events arrive, and so how much is repeated after a crash; 0 is 5 s.
	SaveInterval time.Duration
	// Logger receives ignored messages, and saves that failed; nil is none.
	Logger *slog.Logger
}

// Run delivers the events after the saved position and then new events, until ctx ends or an error occurs. Its error is never nil. The same
// Consumer can be run again, and resumes at the first event that was not delivered.
//
// An event may be delivered twice after a crash, with the same source and id. A position of another log is ignored, and the log is read from its
// beginning. Run returns ErrRolledBack if the log no longer has the last delivered commit: the commits that replaced the lost ones were not
// delivered, so an operator must decide where to continue.
func (c *Consumer) Run(ctx context.Context) error {
	p, err := c.Store.Load(ctx)
	if err != nil {
		return err
	}
	logger := c.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if id := c.Log.ID(); p.LogID != id {
		switch {
		case p.LogID != "":
			logger.Warn("the position is of another event log: reading this log from its beginning", "position", p.LogID, "log", id)
		case p.Sequence > 0:
			return fmt.Errorf("the position has the sequence %d and no log ID: add the ID of the log, which is %s", p.Sequence, id)
		}
		p = Position{LogID: id}
	}
	if c.Delivered != nil {
		c.Delivered(p.Sequence)
	}
	s := &saver{store: c.Store, saved: p, position: p}
	stop := s.start(ctx, cmp.Or(c.SaveInterval, saveInterval), logger)
	from := p.Sequence
	if p.hasCommit() {
		from-- // the last delivered commit is read again, and compared
	}
	err = c.Log.Follow(ctx, from, func(r eventlog.Record) error {
		if r.Seq == p.Sequence {
			if !p.Matches(r) {
				return fmt.Errorf("commit %d: %w", r.Seq, ErrRolledBack)
			}
			return nil
		}
		if err := c.deliverCommit(ctx, r, logger); err != nil {
			return err
		}
		s.advance(PositionAfter(p.LogID, r))
		if c.Delivered != nil {
			c.Delivered(r.Seq)
		}
		return nil
	})
	return errors.Join(err, stop())
}

// deliverCommit delivers the events of one commit. It ignores a message that is not a commit.
func (c *Consumer) deliverCommit(ctx context.Context, r eventlog.Record, logger *slog.Logger) error {
	events, err := r.CloudEvents(c.Log.ID())
	if err != nil {
		logger.Warn("skipping a message of the event log that is not an event of scute", "sequence", r.Seq, "subject", r.Subject(), "error", err)
		return nil
	}
	for _, e := range events {
		if err := c.Deliver(ctx, e); err != nil {
			return fmt.Errorf("event %s of %s, commit %d: %w", e.ID, e.Source, r.Seq, err)
		}
	}
	return nil
}

// saver saves the position periodically.
type saver struct {
	store Store

	mu       sync.Mutex
	position Position
	saved    Position // used only by the goroutine that saves
}

func (s *saver) advance(p Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position = p
}

// start saves at each interval. The returned function stops that, and saves a last time.
func (s *saver) start(ctx context.Context, every time.Duration, logger *slog.Logger) (stop func() error) {
	sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var saving sync.WaitGroup
	saving.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-sctx.Done():
				return
			case <-tick.C:
				if err := s.save(sctx); err != nil && sctx.Err() == nil {
					logger.Warn("saving the position in the event log failed; retrying", "error", err)
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

func (s *saver) save(ctx context.Context) error {
	s.mu.Lock()
	at := s.position
	s.mu.Unlock()
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
