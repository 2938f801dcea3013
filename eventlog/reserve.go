package eventlog

import (
	"context"
	"fmt"
)

// reservedShare is the share of MaxBytes that is reserved for existing aggregates (one part in 20), so that an abort, a rollback or a decision can be
// recorded when the log accepts nothing new.
const reservedShare = 20

// AcceptsNew reports whether the log accepts a commit that creates an aggregate.
func (s Stats) AcceptsNew() bool {
	return s.MaxBytes == 0 || s.Bytes < s.MaxBytes-s.MaxBytes/reservedShare
}

// createsAggregate reports whether the commit creates an aggregate. Daemon events are exempt.
func (c Commit) createsAggregate() bool { return c.Expected == 0 && c.Aggregate.Kind != KindDaemon }

// admit refuses a commit that creates an aggregate if the log may not have the space to complete it.
func (l *Log) admit(ctx context.Context, c Commit) error {
	if !c.createsAggregate() {
		return nil
	}
	s, err := l.Stats(ctx)
	if err != nil {
		return err
	}
	if s.AcceptsNew() {
		return nil
	}
	return fmt.Errorf("%w for new work: it holds %d of %d bytes, and the last %d %% are reserved for work in progress; raise its limit; no commits were lost",
		ErrFull, s.Bytes, s.MaxBytes, 100/reservedShare)
}
