package mover

import (
	"slices"
	"time"

	"scute.dev/kube/object"
)

// transientTimeout is how long a step is retried after transient failures, before Verified.
const transientTimeout = 5 * time.Minute

// orClaimedAt returns the later of at and the time of the last claim.
func (s *State) orClaimedAt(at time.Time) time.Time {
	return slices.MaxFunc([]time.Time{at, s.ClaimedAt}, time.Time.Compare)
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

// ackDeadline returns the first time at which the acknowledgement timeout of a pending object ends.
// If no object is pending, but the set of objects still changes, it returns when the longest of the
// timeouts ends. That timeout restarts when a new holder claims the move, because the new holder
// has not read the objects before.
func (s *State) ackDeadline() time.Time {
	if len(s.Waiting) == 0 {
		return s.orClaimedAt(s.PausedAt).Add(s.maxAckTimeout())
	}
	first := s.maxAckTimeout()
	for _, w := range s.Waiting {
		first = min(first, s.ackTimeout(w.Ref))
	}
	return s.PausedAt.Add(first)
}

// copyAckDeadline returns the time by which the target's controllers must have acknowledged that
// all copies are paused. The timeout restarts when a new holder claims the move.
func (s *State) copyAckDeadline() time.Time {
	return s.orClaimedAt(s.PhaseSince).Add(time.Duration(s.Spec.Create))
}

func (s *State) resumeDeadline() time.Time {
	return s.orClaimedAt(s.ResumedAt).Add(time.Duration(s.Spec.Resume))
}

// retryDeadline returns the time until which a step that fails now is retried, or zero if it is
// retried forever, as from Verified on and in a rollback.
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
