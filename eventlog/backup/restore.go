package backup

import (
	"context"
	"errors"
	"fmt"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// Source returns the source for restoring a log from a verified backup. copied and checked may be nil.
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

// check compares a restored log with the backup.
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
