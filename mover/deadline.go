package mover

import (
	"time"

	"scute.dev/kube/object"
)

const (
	// quietTime is how long a step before Verified may fail with transient errors.
	quietTime = 5 * time.Minute
	// permissionTime is how long a permission that was granted at the preflight may be denied before Verified: an API server
	// that has just started denies everything until it has read its roles.
	permissionTime = 2 * time.Minute
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *State) ackLimit(r object.Ref) time.Duration {
	if d, ok := s.Spec.AckKinds[r.GroupKind()]; ok {
		return time.Duration(d)
	}
	if d, ok := s.AckKinds[r.GroupKind()]; ok {
		return time.Duration(d)
	}
	return time.Duration(s.Spec.Acknowledge)
}

func (s *State) longestAck() time.Duration {
	limit := time.Duration(s.Spec.Acknowledge)
	for _, kinds := range []map[string]Duration{s.Spec.AckKinds, s.AckKinds} {
		for _, d := range kinds {
			limit = max(limit, time.Duration(d))
		}
	}
	return limit
}

// acksUntil is when the wait for acknowledgements ends: for the first of the objects that are known to be missing, and if none is,
// for objects that come and go. A new holder has not looked before; its time begins with its claim.
func (s *State) acksUntil() time.Time {
	if len(s.Waiting) == 0 {
		return later(s.PausedAt, s.ClaimedAt).Add(s.longestAck())
	}
	first := s.longestAck()
	for _, w := range s.Waiting {
		first = min(first, s.ackLimit(w.Ref))
	}
	return s.PausedAt.Add(first)
}

// seenUntil is when the wait ends for controllers of the target that are to acknowledge the copies. A new holder has not looked before.
func (s *State) seenUntil() time.Time {
	return later(s.PhaseSince, s.ClaimedAt).Add(time.Duration(s.Spec.Create))
}

// awakeUntil is when the wait ends for what was resumed on the target.
func (s *State) awakeUntil() time.Time {
	return later(s.ResumedAt, s.ClaimedAt).Add(time.Duration(s.Spec.Awake))
}

// triedUntil is how long a step that fails now is tried again; zero is without a limit: from Verified on, and in a rollback, a move
// never gives up.
func (s *State) triedUntil(now time.Time) time.Time {
	switch {
	case s.Verified(), s.Phase == PhaseRollingBack, s.Lost != nil, s.Way != "", s.Abandon:
		return time.Time{}
	case s.Phase == PhaseCreating:
		return s.PhaseSince.Add(time.Duration(s.Spec.Create))
	case s.TransientFailure != "":
		return s.TransientFailureSince.Add(quietTime)
	default:
		return now.Add(quietTime)
	}
}
