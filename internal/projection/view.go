package projection

import (
	"time"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/internal/usage"
	moves "scute.dev/mover/runner"
	schedules "scute.dev/mover/schedule/runner"
	pauses "scute.dev/pause/runner"
	remediations "scute.dev/remediator/runner"
	runs "scute.dev/workflow/runner"
)

// View is all that the daemon knows of the log. What one part cannot read is set aside for that aggregate alone. With the commit that
// opens an epoch it forgets what has ended before: the log itself is asked about that.
type View struct {
	Moves        *moves.Moves
	Runs         *runs.Runs
	Remediations *remediations.Remediations
	Pauses       *pauses.Pauses
	Schedules    *schedules.Schedules
	Usage        *usage.Usage
	Trust        *trust.View
	// News are told of each commit about an aggregate of a kind.
	News map[eventlog.Kind]func(id string, seq uint64)
}

// New makes an empty view. The limits are those of a namespace.
func New(limits usage.Limits) *View {
	return &View{
		Moves: moves.NewMoves(nil), Runs: runs.NewRuns(nil), Remediations: remediations.NewRemediations(nil), Pauses: pauses.NewPauses(nil),
		Schedules: schedules.NewSchedules(nil),
		Usage:     usage.New(limits), Trust: trust.NewView(),
	}
}

// Apply implements projector.View.
func (v *View) Apply(r eventlog.Record) error {
	v.Usage.Apply(r)
	if tell := v.News[r.Aggregate.Kind]; tell != nil {
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
		if at, ok := r.OpensEpoch(); ok {
			v.forget(r.Seq, at)
		}
		return v.Trust.Apply(r)
	default:
		return nil
	}
}

// forget drops what has ended. seq and at are those of the commit that opens an epoch.
func (v *View) forget(seq uint64, at time.Time) {
	v.Moves.Forget()
	v.Runs.Forget()
	v.Pauses.Forget()
	v.Schedules.Forget()
	v.Remediations.Forget(seq, at)
}
