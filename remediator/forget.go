package remediator

import (
	"slices"
	"time"
)

// counts is how long something counts that has ended: longer than the window of any limit and than a cooldown, which are a year at most.
const counts = 366 * 24 * time.Hour

// StillCounts says that something that ended, or happened, at a time may still count.
func StillCounts(at, now time.Time) bool { return now.Sub(at) < counts }

// Forget reduces the state of an owner to who it is, if all that was begun for its machines had ended at a time, nothing is retained of
// them, and nothing of it counts any more. It says whether that is so.
func Forget(s *State, at time.Time) bool {
	if !over(s) || slices.ContainsFunc(s.times(), func(t time.Time) bool { return StillCounts(t, at) }) {
		return false
	}
	*s = State{Owner: s.Owner, Holder: s.Holder}
	return true
}

// over says that nothing is in progress for an owner, and that nothing is retained of its machines that has no end.
func over(s *State) bool {
	if s.Owner.UID == "" || Due(s) || len(s.Resting) > 0 || s.InStorm || len(s.Mass.Waited) > 0 {
		return false
	}
	if s.Etcd != nil && len(s.Etcd.Problems) > 0 || s.Care.Active != nil || s.Care.Waits != "" || !s.Care.DisarmedAt.IsZero() {
		return false
	}
	for _, u := range s.Unhealthy {
		switch {
		case u.ordered(), u.Surprised, len(u.Objects) > 0, u.EscalationStep != "":
			return false
		case u.ClearedAt.IsZero() && (u.Attempts > 0 || u.Unplaced): // these count until the machine was well for some time
			return false
		}
	}
	return true
}

// times are when something ended, or happened, that counts for some time.
func (s *State) times() []time.Time {
	list := append([]time.Time{s.StormPassed, s.Care.EndedAt}, s.Starts...)
	for _, u := range s.Unhealthy {
		list = append(list, u.ClearedAt, u.LastAttempt, u.DecidedAt, u.HoldUntil)
	}
	for i := range s.History {
		list = append(list, s.History[i].EndedAt)
	}
	for _, l := range s.Chain {
		list = append(list, l.At)
	}
	for _, passed := range s.Mass.Passed {
		list = append(list, passed)
	}
	for _, done := range s.Care.Done {
		list = append(list, done)
	}
	return list
}
