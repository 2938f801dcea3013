package runner

import (
	"cmp"
	"context"

	"scute.dev/aggregate"
	"scute.dev/mover"
)

// Becomes is what an operator's acceptance of a log that went back, or was replaced, means for an open move.
type Becomes string

// What becomes of an open move.
const (
	// GoesOn: the log has the whole plan, and the move asks both clusters before each step.
	GoesOn Becomes = "goes on"
	// IsLost: the clusters may be further than the log. Nothing is done before both were asked, and an operator resolved it.
	IsLost Becomes = "is lost"
	// Ends: its resource says that it is over, or is gone. It may have ended another way than this log would take it.
	Ends Becomes = "ends"
)

// Told is what the resource of a move says, which may be newer than the log.
type Told struct {
	Phase mover.Phase
	// Over: it has ended, or the resource is gone.
	Over bool
}

// turnedBack: an operator or a failure had turned the move back.
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

// Becomes is what Reconcile does with an open move. One that this program cannot read is left alone.
func (m *Moves) Becomes(id string, told Told) Becomes {
	then := GoesOn
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil && e.Err == nil {
			then = becomes(e.State, told)
		}
	})
	return then
}

// Reconcile records what becomes of an open move now that an operator accepts a log which may not know the move's last
// commits: a pause, an abort, that the source was emptied, even its end.
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
