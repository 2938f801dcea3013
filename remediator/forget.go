package remediator

import "time"

// countRetention is how long an ended remediation may count. It is longer than the windows of limits and the cooldowns, which are a year at most.
const countRetention = 366 * 24 * time.Hour

// StillCounts reports whether something that ended or happened at a time may still count.
func StillCounts(at, now time.Time) bool { return now.Sub(at) < countRetention }

// Forget reduces the state of an owner to its identity if nothing is in progress, nothing is retained of its machines, and nothing counts any more.
// It reports whether it did.
func Forget(s *State, at time.Time) bool {
	if !isIdle(s) {
		return false
	}
	counted, still := *s, false
	counted.eachTime(func(t *time.Time) { still = still || StillCounts(*t, at) })
	if still {
		return false
	}
	*s = State{Owner: s.Owner, Holder: s.Holder}
	return true
}

// isIdle reports whether nothing is in progress for an owner, and nothing without an end is retained of its machines.
func isIdle(s *State) bool {
	if s.Owner.UID == "" || HasPending(s) || len(s.Resting) > 0 || s.InMassFailure || len(s.Mass.Pending) > 0 {
		return false
	}
	if len(s.Etcd.Problems) > 0 || s.Maintenance.Active.Node != "" || s.Maintenance.WaitReason != "" || !s.Maintenance.DisarmedAt.IsZero() {
		return false
	}
	for _, u := range s.Unhealthy {
		switch {
		case u.hasOrder(), u.WrongMachineDeleted, len(u.Objects) > 0, u.EscalationStep != "":
			return false
		case u.ClearedAt.IsZero() && (u.Attempts > 0 || u.ReplacementTimedOut): // these count until the machine was healthy for some time
			return false
		}
	}
	return true
}
