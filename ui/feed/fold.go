package feed

import (
	"scute.dev/cmd/ctl/backup"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/move"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/cmd/ctl/run"
	"scute.dev/eventlog"
)

// Fold is the state of one aggregate, computed from its commits.
type Fold interface {
	// Apply applies the next commit. An error leaves the state unchanged.
	Apply(r eventlog.Record) error
	// Err returns why an event cannot be read. It returns nil if Apply returns such errors itself.
	Err() error
	// Documents returns the objects of the aggregate in the form that lists show.
	Documents(k *kit.Kit) []kit.Document
	// Object returns the object that `-o json` prints for the aggregate, and the name of the field
	// that contains it.
	Object() (name string, object any)
	// Content returns the state. Its JSON is hashed, to compare the states of two logs.
	Content() any
	// Describe returns the lines that describe the aggregate.
	Describe(v kit.View) []string
}

// NewFold returns an empty Fold, or nil if the kind has none. A kind added here appears in the
// lists and pages of scutectl ui and in `scutectl log replay`.
func NewFold(a eventlog.Aggregate) Fold {
	switch a.Kind {
	case eventlog.KindRun:
		return run.NewFold(a.ID)
	case eventlog.KindMove:
		return move.NewFold(a.ID)
	case eventlog.KindRemediation:
		return remediation.NewFold()
	case eventlog.KindPause:
		return pause.NewFold(a.ID)
	case eventlog.KindBackup:
		return backup.NewFold(a.ID)
	default:
		return nil
	}
}
