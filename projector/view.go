package projector

import (
	"context"

	"scute.dev/eventlog"
)

// View is the state to which a projector applies the log. The projector calls its methods one at a time.
type View interface {
	// Apply applies a commit. It ignores commits of other kinds. The result must depend only on the commit and the view. It returns an error, for
	// example eventlog.ErrUnknownType, if the view cannot follow the commit's aggregate any further. Then Apply has changed nothing. The projector
	// logs the error, sets the aggregate aside, and continues with all other aggregates.
	Apply(r eventlog.Record) error
}

// Log is the part of *eventlog.Log that a projector reads.
type Log interface {
	// Head returns the leader's last sequence.
	Head(ctx context.Context) (uint64, error)
	// Follow calls fn with every commit after a sequence, in order and without gaps, until ctx ends or fn fails.
	Follow(ctx context.Context, after uint64, fn func(eventlog.Record) error) error
}
