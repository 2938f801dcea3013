package backup

import (
	"context"
	"fmt"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// LogSource returns the source for restoring a log elsewhere from the log itself, which must not change meanwhile. The copy is compared with the log
// when it is complete. Then checked is called, before any process can open the copy; its error refuses the copy. progress is called with the number
// of copied or compared commits, and the head.
func LogSource(ctx context.Context, log Log, progress func(doing string, seq, head uint64), checked func() error) (eventlog.RestoreSource, error) {
	stats, err := log.Stats(ctx)
	if err != nil {
		return eventlog.RestoreSource{}, fmt.Errorf("reading the log: %w", err)
	}
	r := eventlog.RestoreSource{LogID: log.ID(), Last: stats.Commits}
	var want seal.Checkpoint
	r.Archive = Archive(r.Last, func(ctx context.Context, fn func(eventlog.Record) error) error {
		var err error
		want, err = checkpointOf(ctx, log, func(c eventlog.Record) error {
			progress("copying", c.Seq, r.Last)
			return fn(c)
		})
		return err
	})
	r.Check = func(ctx context.Context, l *eventlog.Log) error {
		have, err := checkpointOf(ctx, l, func(c eventlog.Record) error {
			progress("verifying", c.Seq, r.Last)
			return nil
		})
		switch {
		case err != nil:
			return err
		case have != want:
			return fmt.Errorf("the copy differs from the log: it is log %s with %d commits and the root %s, must be log %s with %d and %s; move the log again",
				have.LogID, have.Size, have.Root, want.LogID, want.Size, want.Root)
		}
		return checked()
	}
	return r, nil
}

// checkpointOf returns the checkpoint of all commits of a log, and calls fn with each commit.
func checkpointOf(ctx context.Context, log Log, fn func(eventlog.Record) error) (seal.Checkpoint, error) {
	var s seal.Sum
	_, err := log.Replay(ctx, 0, func(r eventlog.Record) error {
		s.Add(r)
		return fn(r)
	})
	return s.Checkpoint(log.ID()), err
}
