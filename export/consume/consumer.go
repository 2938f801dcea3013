package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"scute.dev/eventlog"
)

// Log contains the methods of a log that a consumer needs. *eventlog.Log implements it.
type Log interface {
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
	// SaveInterval is how often the position is saved; 0 means 5 s. After a crash, events of up to
	// this time are delivered again.
	SaveInterval time.Duration
	// Logger receives warnings about skipped messages and failed saves; nil means no logging.
	Logger *slog.Logger
}

// Run delivers the events after the saved position and then new events, until ctx ends or an error
// occurs. Its error is never nil. The same Consumer can be run again; it then resumes at the first
// event that was not delivered.
//
// After a crash, an event may be delivered twice, with the same source and id. A position of
// another log is ignored, and the log is read from its beginning. Run returns ErrRolledBack if the
// log no longer has the last delivered commit: other commits have replaced the lost ones and were
// not delivered, so an operator must decide where to continue.
func (c *Consumer) Run(ctx context.Context) error {
	logger := cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	s, err := Resume(ctx, c.Log, c.Store, logger)
	if err != nil {
		return err
	}
	p := s.position
	if c.Delivered != nil {
		c.Delivered(p.Sequence)
	}
	stop := s.SaveEvery(ctx, c.SaveInterval, nil)
	err = c.Log.Follow(ctx, p.ReadAfter(), func(r eventlog.Record) error {
		if r.Seq == p.Sequence {
			return p.Check(r)
		}
		if err := c.deliverCommit(ctx, r, logger); err != nil {
			return err
		}
		s.Advance(PositionAfter(p.LogID, r))
		if c.Delivered != nil {
			c.Delivered(r.Seq)
		}
		return nil
	})
	return errors.Join(err, stop())
}

// deliverCommit delivers the events of a commit. It skips a message that is not a commit of scute.
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
