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
	// Err returns why an event cannot be read, if Apply does not return that.
	Err() error
	// Documents returns the objects of the aggregate as lists show them.
	Documents(k *kit.Kit) []kit.Document
	// Object returns what `-o json` prints for the aggregate, and the name of its field.
	Object() (name string, object any)
	// Content returns the state. The hash of its JSON is compared between logs.
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
