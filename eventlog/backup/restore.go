package backup

import (
	"context"
	"errors"
	"fmt"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// Source returns the source for restoring a log from a verified backup. copied and checked are
// called with the progress and may be nil.
func Source(dir string, m Manifest, copied, checked func(seq, last uint64)) eventlog.RestoreSource {
	return eventlog.RestoreSource{
		LogID: m.LogID, Last: m.Last,
		Archive: Archive(m.Last, func(ctx context.Context, fn func(eventlog.Record) error) error {
			return Each(ctx, dir, m, func(r eventlog.Record) error {
				if copied != nil {
					copied(r.Seq, m.Last)
				}
				return fn(r)
			}, func(problem error) error { return problem })
		}),
		Check: func(ctx context.Context, l *eventlog.Log) error { return check(ctx, l, m, checked) },
	}
}

func check(ctx context.Context, l *eventlog.Log, m Manifest, progress func(seq, last uint64)) error {
	if l.ID() != m.LogID {
		return fmt.Errorf("the restored log has the ID %s, must have %s", l.ID(), m.LogID)
	}
	v := seal.NewVerifier(m.Checkpoint(), nil, nil)
	_, err := l.Replay(ctx, 0, func(r eventlog.Record) error {
		if progress != nil {
			progress(r.Seq, m.Last)
		}
		return v.Add(r)
	})
	if err != nil {
		return err
	}
	report, err := v.Report()
	if err != nil {
		return err
	}
	var problems []error
	for _, f := range report.Findings {
		problems = append(problems, errors.New(f.String()))
	}
	if len(problems) > 0 {
		return fmt.Errorf("the restored log is not the one of the backup: %w", errors.Join(problems...))
	}
	return nil
}

// LogSource returns the source for restoring a copy of a log. The log must not change during the
// restore. After the copy is complete, it is compared with the log, and then checked is called. No
// process can open the copy before that. If checked fails, the restore fails. progress is called
// with the number of copied or compared commits, and with the head.
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

func checkpointOf(ctx context.Context, log Log, fn func(eventlog.Record) error) (seal.Checkpoint, error) {
	var s seal.Sum
	_, err := log.Replay(ctx, 0, func(r eventlog.Record) error {
		s.Add(r)
		return fn(r)
	})
	return s.Checkpoint(log.ID()), err
}
