package projection

import (
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/internal/usage"
	moves "scute.dev/mover/runner"
	schedules "scute.dev/mover/schedule/runner"
	pauses "scute.dev/pause/runner"
	remediations "scute.dev/remediator/runner"
	runs "scute.dev/workflow/runner"
)

// View is all that the daemon knows of the log. What one part cannot read is set aside for that aggregate alone. With every
// sweepEvery-th commit it forgets what ended first; the log itself is asked about that. When it does so depends on the
// commits alone, so that every replay gives the same.
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

	keptBytes  int
	sweepEvery uint64
}

// New makes an empty view. The limits are those of a namespace.
func New(limits usage.Limits) *View {
	return &View{
		Moves: moves.NewMoves(nil), Runs: runs.NewRuns(nil), Remediations: remediations.NewRemediations(nil), Pauses: pauses.NewPauses(nil),
		Schedules: schedules.NewSchedules(nil),
		Usage:     usage.New(limits), Trust: trust.NewView(),
		keptBytes: keptBytes, sweepEvery: sweepEvery,
	}
}

// What has ended is kept for those who ask for it soon, a controller that writes its end most of all: of each kind as much as took keptBytes
// in the log. It is looked at with every sweepEvery-th commit.
const (
	keptBytes  = 16 << 20
	sweepEvery = 1024
)

// Apply implements projector.View.
func (v *View) Apply(r eventlog.Record) error {
	err := v.apply(r)
	if r.Seq%v.sweepEvery == 0 {
		v.forget(v.keptBytes)
		v.Remediations.Forget(r.Seq, r.Stored)
	}
	return err
}

func (v *View) apply(r eventlog.Record) error {
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
		return v.Trust.Apply(r)
	default:
		return nil
	}
}

// forget drops what has ended, but for the latest of each kind, as much as took so many bytes in the log.
func (v *View) forget(most int) {
	v.Moves.Forget(most)
	v.Runs.Forget(most)
	v.Pauses.Forget(most)
	v.Schedules.Forget(most)
}
