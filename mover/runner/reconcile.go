package runner

import (
	"cmp"
	"context"

	"scute.dev/aggregate"
	"scute.dev/mover"
)

// Continuation is how an open move continues after an operator has accepted a log that was replaced
// or restored from an older backup.
type Continuation string

// The continuations.
const (
	// Continues means that the log contains enough of the move to continue. The move reads both
	// clusters before each step.
	Continues Continuation = "goes on"
	// BecomesLost means that the clusters may be ahead of the log. The move waits until both
	// clusters are read and an operator has resolved it.
	BecomesLost Continuation = "is lost"
	// Ends means that the Move reports its end or was deleted. The move must not continue from this
	// log, because it might end differently.
	Ends Continuation = "ends"
)

// ResourceState is the state of a move according to its Move resource, which may be newer than the
// log.
type ResourceState struct {
	Phase mover.Phase
	// Ended means that the move has ended, or that the resource was deleted.
	Ended bool
}

func (w ResourceState) reverted() bool {
	return w.Phase == mover.PhaseRollingBack || w.Phase == mover.PhaseFailed || w.Phase == mover.PhaseStranded
}

func continuation(s *mover.State, told ResourceState) Continuation {
	switch {
	case told.Ended:
		return Ends
	case s.Verified() || s.Way != "" || s.Spec.DryRun || s.Posted && !told.reverted():
		return Continues
	default:
		return BecomesLost
	}
}

// Continuation returns what Reconcile will do with an open move. It returns Continues for a move
// with an event that this program cannot read.
func (m *Moves) Continuation(id string, told ResourceState) Continuation {
	then := Continues
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil && e.Err == nil {
			then = continuation(e.State, told)
		}
	})
	return then
}

// Reconcile records how an open move continues after an operator has accepted a log that may lack
// the move's last commits: a pause, an abort, the deletion at the source, or the end.
func (r *Runner) Reconcile(ctx context.Context, id, actor string, told ResourceState) error {
	return r.command(ctx, id, actor, func(s *mover.State) (mover.Event, error) {
		switch then := continuation(s, told); {
		case then == Ends:
			return mover.MissingEnd(cmp.Or(string(told.Phase), "deleted")), nil
		case then == BecomesLost && s.Lost == nil:
			return mover.LogLost{Log: s.MarkLog, Phase: told.Phase}, nil
		default:
			return nil, nil
		}
	})
}
