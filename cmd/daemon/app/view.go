package app

import (
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/internal/usage"
	moves "scute.dev/mover/runner"
	remediations "scute.dev/remediator/runner"
	runs "scute.dev/workflow/runner"
)

// view is all that the daemon knows of the log: one replay fills it. What one part cannot read is set aside for that
// aggregate alone.
type view struct {
	moves        *moves.Moves
	runs         *runs.Runs
	remediations *remediations.Remediations
	usage        *usage.Usage
	trust        *trust.View
	// news are told of each commit about an aggregate of a kind.
	news map[eventlog.Kind]func(id string, seq uint64)
}

// Apply implements projector.View.
func (v *view) Apply(r eventlog.Record) error {
	v.usage.Apply(r)
	if tell := v.news[r.Aggregate.Kind]; tell != nil {
		tell(r.Aggregate.ID, r.Seq)
	}
	switch r.Aggregate.Kind {
	case eventlog.KindMove:
		return v.moves.Apply(r)
	case eventlog.KindRun:
		return v.runs.Apply(r)
	case eventlog.KindRemediation:
		return v.remediations.Apply(r)
	case eventlog.KindDaemon:
		return v.trust.Apply(r)
	default:
		return nil
	}
}
