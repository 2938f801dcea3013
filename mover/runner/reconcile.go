package runner

import (
	"cmp"
	"context"

	"scute.dev/aggregate"
	"scute.dev/mover"
)

// Becomes is how an open move continues after an operator has accepted a log that was restored from an older backup, or replaced.
type Becomes string

// The ways in which an open move continues.
const (
	// GoesOn means that the move continues: the log has the whole plan, and the move reads both clusters before each step.
	GoesOn Becomes = "goes on"
	// IsLost means that the clusters may be ahead of the log. Nothing is done before both were read and an operator has resolved the move.
	IsLost Becomes = "is lost"
	// Ends means that its resource reports the end, or was deleted. The actual end may differ from the one that this log would lead to.
	Ends Becomes = "ends"
)

// Told is the state in the resource of a move, which may be newer than the log.
type Told struct {
	Phase mover.Phase
	// Over means that the move has ended, or that the resource was deleted.
	Over bool
}

// turnedBack reports whether the move was rolling back, had failed or was stranded.
func (w Told) turnedBack() bool {
	return w.Phase == mover.PhaseRollingBack || w.Phase == mover.PhaseFailed || w.Phase == mover.PhaseStranded
}

func becomes(s *mover.State, told Told) Becomes {
	switch {
	case told.Over:
		return Ends
	case s.Verified() || s.Way != "" || s.Spec.DryRun || s.Posted && !told.turnedBack():
		return GoesOn
	default:
		return IsLost
	}
}

// Becomes returns what Reconcile does with an open move. Reconcile does not change a move that this program cannot read.
func (m *Moves) Becomes(id string, told Told) Becomes {
	then := GoesOn
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil && e.Err == nil {
			then = becomes(e.State, told)
		}
	})
	return then
}

// Reconcile records how an open move continues after an operator has accepted a log that may lack the move's last commits, for example a pause, an
// abort, the deletion at the source, or the end.
func (r *Runner) Reconcile(ctx context.Context, id, actor string, told Told) error {
	return r.command(ctx, id, actor, func(s *mover.State) (mover.Event, error) {
		switch then := becomes(s, told); {
		case then == Ends:
			return mover.Outlived(cmp.Or(string(told.Phase), "deleted")), nil
		case then == IsLost && s.Lost == nil:
			return mover.LogLost{Log: s.MarkLog, Phase: told.Phase}, nil
		default:
			return nil, nil
		}
	})
}
