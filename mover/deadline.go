package mover

import (
	"time"

	"scute.dev/kube/object"
)

// transientTimeout is how long a step before Verified may fail with transient errors.
const transientTimeout = 5 * time.Minute

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *State) ackTimeout(r object.Ref) time.Duration {
	if d, ok := s.Spec.AckKinds[r.GroupKind()]; ok {
		return time.Duration(d)
	}
	if d, ok := s.AckKinds[r.GroupKind()]; ok {
		return time.Duration(d)
	}
	return time.Duration(s.Spec.Acknowledge)
}

func (s *State) maxAckTimeout() time.Duration {
	limit := time.Duration(s.Spec.Acknowledge)
	for _, kinds := range []map[string]Duration{s.Spec.AckKinds, s.AckKinds} {
		for _, d := range kinds {
			limit = max(limit, time.Duration(d))
		}
	}
	return limit
}

// ackDeadline returns when the wait for acknowledgements ends: at the earliest limit of a missing
// object, or, if none is missing and the set of objects still changes, at the longest limit. That
// limit restarts with the claim of a new holder, which has not read the objects before.
func (s *State) ackDeadline() time.Time {
	if len(s.Waiting) == 0 {
		return later(s.PausedAt, s.ClaimedAt).Add(s.maxAckTimeout())
	}
	first := s.maxAckTimeout()
	for _, w := range s.Waiting {
		first = min(first, s.ackTimeout(w.Ref))
	}
	return s.PausedAt.Add(first)
}

// copyAckDeadline returns when the wait ends for the target's controllers to acknowledge the
// copies. It restarts with the claim of a new holder.
func (s *State) copyAckDeadline() time.Time {
	return later(s.PhaseSince, s.ClaimedAt).Add(time.Duration(s.Spec.Create))
}

// resumeDeadline returns when the wait ends for the objects that were resumed on the target.
func (s *State) resumeDeadline() time.Time {
	return later(s.ResumedAt, s.ClaimedAt).Add(time.Duration(s.Spec.Resume))
}

// retryDeadline returns the time until which a step that fails now is retried. It returns zero if
// there is no limit: from Verified on, and in a rollback, a move retries forever.
func (s *State) retryDeadline(now time.Time) time.Time {
	switch {
	case s.Verified(), s.Phase == PhaseRollingBack, s.Lost != nil, s.Way != "", s.Abandon:
		return time.Time{}
	case s.Phase == PhaseCreating:
		return s.PhaseSince.Add(time.Duration(s.Spec.Create))
	case s.TransientFailure.Message != "":
		return s.TransientFailureSince.Add(transientTimeout)
	default:
		return now.Add(transientTimeout)
	}
}
