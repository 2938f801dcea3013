package projection

import (
	schedules "scute.dev/backup/runner"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	moves "scute.dev/mover/runner"
	pauses "scute.dev/pause/runner"
	remediations "scute.dev/remediator/runner"
	runs "scute.dev/workflow/runner"
)

// View contains the views of all domains. If one of them cannot read a commit, only the commit's aggregate is set aside. With every sweepEvery-th
// commit it deletes the objects that ended first, which are then read from the log. This depends only on the commits, so that every replay produces
// the same view.
type View struct {
	Moves        *moves.Moves
	Runs         *runs.Runs
	Remediations *remediations.Remediations
	Pauses       *pauses.Pauses
	Schedules    *schedules.Schedules
	Usage        *Usage
	Trust        *trust.View
	// Listeners are called for each commit about an aggregate of a kind.
	Listeners map[eventlog.Kind]func(id string, seq uint64)

	keptBytes  int
	sweepEvery uint64
}

// New returns an empty view. The limits apply to each namespace.
func New(limits Limits) *View {
	return &View{
		Moves: moves.NewMoves(nil), Runs: runs.NewRuns(nil), Remediations: remediations.NewRemediations(), Pauses: pauses.NewPauses(nil),
		Schedules: schedules.NewSchedules(nil),
		Usage:     NewUsage(limits), Trust: trust.NewView(),
		keptBytes: keptBytes, sweepEvery: sweepEvery,
	}
}

// Objects that have ended are kept for callers that need them soon, above all for the controller that writes their final status. keptBytes is the
// size in the log of the ended objects of a kind that are kept. They are checked with every sweepEvery-th commit.
const (
	keptBytes  = 16 << 20
	sweepEvery = 1024
)

// Apply implements projector.View.
func (v *View) Apply(r eventlog.Record) error {
	err := v.apply(r)
	if r.Seq%v.sweepEvery == 0 {
		v.forget(v.keptBytes)
		v.Remediations.Forget(r.Stored)
	}
	return err
}

func (v *View) apply(r eventlog.Record) error {
	v.Usage.Apply(r)
	if tell := v.Listeners[r.Aggregate.Kind]; tell != nil {
		tell(r.Aggregate.ID, r.Seq)
	}
	switch r.Aggregate.Kind {
	case eventlog.KindMove:
		return v.Moves.Apply(r)
	case eventlog.KindRun:
		return v.Runs.Apply(r)
	case eventlog.KindRemediation:
		return v.Remediations.Apply(r)
	case eventlog.KindPause:
		return v.Pauses.Apply(r)
	case eventlog.KindBackup:
		return v.Schedules.Apply(r)
	case eventlog.KindDaemon:
		return v.Trust.Apply(r)
	default:
		return nil
	}
}

// forget deletes the objects that have ended, except for the latest of each kind up to a size in the log.
func (v *View) forget(most int) {
	v.Moves.Forget(most)
	v.Runs.Forget(most)
	v.Pauses.Forget(most)
	v.Schedules.Forget(most)
}
