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

// Snapshotter is a View that can be saved and restored, in parts, so that no more than one of them is in memory twice.
type Snapshotter interface {
	View
	// Snapshot hands each part to put, with a unique name: the same parts in the same order for equal views. A part about an
	// aggregate has its name. It changes nothing, and may run beside readers. put does not keep the bytes.
	Snapshot(put func(part string, data []byte) error) error
	// Restore fills a part of an empty view with the bytes of Snapshot. It is called before Apply.
	Restore(part string, data []byte) error
}

// Log is the part of *eventlog.Log that a projector reads.
type Log interface {
	// ID tells the log from every other one.
	ID() string
	// Head is the leader's last sequence.
	Head(ctx context.Context) (uint64, error)
	// At is the commit at a sequence.
	At(ctx context.Context, seq uint64) (eventlog.Record, error)
	// Floor is what was dropped of the log; nil if nothing was.
	Floor() *eventlog.Floor
	// Follow hands every commit after a sequence to fn, in order and without gaps, until ctx ends or it fails.
	Follow(ctx context.Context, after uint64, fn func(eventlog.Record) error) error
}
