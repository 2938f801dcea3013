package projector

import (
	"context"

	"scute.dev/eventlog"
)

// View is what a projector folds the log into. The projector calls its methods one at a time.
type View interface {
	// Apply applies one commit, whatever its kind; a view ignores commits of other kinds. It must depend on the commit
	// and on the view alone. An error (for example eventlog.ErrUnknownType) says that this commit's aggregate cannot be
	// followed any further: Apply has changed nothing, the projector sets the aggregate aside, counts it, and continues
	// with all others.
	Apply(r eventlog.Record) error
}

// Log is the part of *eventlog.Log that a projector reads.
type Log interface {
	// Head is the leader's last sequence.
	Head(ctx context.Context) (uint64, error)
	// Follow hands every commit after a sequence to fn, in order and without gaps, until ctx ends or it fails.
	Follow(ctx context.Context, after uint64, fn func(eventlog.Record) error) error
}
