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
	// saveEvery is how often a position is saved when no other interval was given.
	saveEvery = 5 * time.Second
	// saveTimeout bounds one save.
	saveTimeout = 10 * time.Second
)

// Log is what a consumer needs of a log. An *eventlog.Log is one.
type Log interface {
	// ID tells the log from every other one.
	ID() string
	// Follow passes every commit after a sequence to fn, in order, until ctx ends, fn fails or the log is damaged.
	Follow(ctx context.Context, after uint64, fn func(eventlog.Record) error) error
}

// Consumer hands the events of a log to one receiver.
type Consumer struct {
	Log   Log
	Store Store
	// Take receives one event after the other. Its error ends the consumer; the event counts as not taken.
	Take func(ctx context.Context, e eventlog.CloudEvent) error
	// Taken is told the sequence up to which all events were taken; it may be nil.
	Taken func(seq uint64)
	// SaveEvery is how often the position is saved while events arrive, and so how much is repeated after a crash; 0 is 5 s.
	SaveEvery time.Duration
	// Logger receives what is passed over, and saves that failed; nil is none.
	Logger *slog.Logger
}

// Run hands over the events after the saved position, and then new ones, until ctx ends or something fails. Its error is never
// nil. The same Consumer can be run again, and continues at the first event that was not taken.
//
// An event may be taken twice after a crash: its source and id are the same then. A position of another log is not used: the
// log is read from its beginning. Run ends with ErrWentBack if the log does not have the commit that was taken last: what it has in the
// place of what it lost was not handed over, and where to continue is an operator's decision.
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
			logger.Warn("the position is of another event log: this one is read from its beginning", "position", p.LogID, "log", id)
		case p.Sequence > 0:
			return fmt.Errorf("the position has the sequence %d and no log ID: add the ID of the log, which is %s", p.Sequence, id)
		}
		p = Position{LogID: id}
	}
	if c.Taken != nil {
		c.Taken(p.Sequence)
	}
	s := &saver{store: c.Store, saved: p, at: p}
	stop := s.start(ctx, cmp.Or(c.SaveEvery, saveEvery), logger)
	from := p.Sequence
	if p.marked() {
		from-- // the commit that was taken last is read again, and compared
	}
	err = c.Log.Follow(ctx, from, func(r eventlog.Record) error {
		if r.Seq == p.Sequence {
			if !p.Holds(r) {
				return fmt.Errorf("commit %d: %w", r.Seq, ErrWentBack)
			}
			return nil
		}
		if err := c.commit(ctx, r, logger); err != nil {
			return err
		}
		s.reached(After(p.LogID, r))
		if c.Taken != nil {
			c.Taken(r.Seq)
		}
		return nil
	})
	return errors.Join(err, stop())
}

// commit hands over the events of one commit. A message that is no commit is nobody's event.
func (c *Consumer) commit(ctx context.Context, r eventlog.Record, logger *slog.Logger) error {
	events, err := r.CloudEvents(c.Log.ID())
	if err != nil {
		logger.Warn("a message of the event log is no event of scute and is passed over", "sequence", r.Seq, "subject", r.Subject(), "error", err)
		return nil
	}
	for _, e := range events {
		if err := c.Take(ctx, e); err != nil {
			return fmt.Errorf("event %s of %s, commit %d: %w", e.ID, e.Source, r.Seq, err)
		}
	}
	return nil
}

// saver saves a position now and then.
type saver struct {
	store Store

	mu    sync.Mutex
	at    Position
	saved Position // of the goroutine that saves
}

func (s *saver) reached(p Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = p
}

// start saves at each interval. The function that it returns ends that, with a last save.
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
					logger.Warn("the position in the event log is not saved; it is tried again", "error", err)
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
	at := s.at
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
