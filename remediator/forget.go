package remediator

import "time"

// countRetention is the time after which a remediation certainly no longer counts toward a limit or
// a cooldown. It is longer than the longest permitted window or cooldown, which is a year.
const countRetention = 366 * 24 * time.Hour

// StillCounts reports whether a remediation or mass failure that started or ended at a time may
// still count toward a limit or a cooldown.
func StillCounts(at, now time.Time) bool { return now.Sub(at) < countRetention }

// Forget removes everything except the owner and the holder from a state, if nothing is in
// progress, nothing must be retained about the owner's machines, and no event still counts toward a
// limit or a cooldown. It reports whether it did.
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

// isIdle reports whether nothing is in progress for an owner, and its machines have no record that
// must be retained for an unlimited time.
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
		case u.ClearedAt.IsZero() && (u.Attempts > 0 || u.ReplacementTimedOut): // both count until the machine has been healthy for provenAfter
			return false
		}
	}
	return true
}
