package remediator

import (
	"time"

	"scute.dev/kube/object"
)

// lookAgain is how long something that no watch reports is left unasked: Nodes where the policy asks for them, and etcd while a
// machine is unhealthy.
const lookAgain = 30 * time.Second

// Wake is when, at the latest, the owner must be reconciled again although nothing changed; zero for never. Without a
// remediation it is never, unless the policy checks Nodes or surveys etcd: watches report changes.
func Wake(s *State, f *Facts, now time.Time) time.Duration {
	var soonest time.Duration
	at := func(d time.Duration) {
		if d = max(d, time.Second); soonest == 0 || d < soonest {
			soonest = d
		}
	}
	until := func(t time.Time) {
		if t.After(now) {
			at(t.Sub(now))
		}
	}
	switch {
	case !f.Owner.Found && s.Active != nil:
		return lookAgain // no watch tells of it any more
	case !f.Owner.Found || f.Policy.Name == "" && s.Active == nil:
		return soonest
	}
	if in, ok := s.surveyIn(f, now); ok {
		at(in)
	}
	if in, ok := s.careIn(f, now); ok {
		at(in)
	}
	for m := range f.all() {
		if !m.Deleting {
			if h := Judge(m, s.Unhealthy[m.UID].mark(), f.Policy.Checks, now); h.Left > 0 {
				at(h.Left)
			}
			if m.Node != "" && f.Policy.ReadsNodes() {
				at(lookAgain)
			}
			if m.leftUnhealthy() {
				at(lookAgain) // no watch tells what its MachineHealthCheck finds
			}
			if m.Request != nil && s.Unhealthy[m.UID].mark() == nil {
				until(m.Request.Created.Add(settledIn))
			}
		}
	}
	for _, u := range s.Unhealthy {
		if u.Mark == nil {
			continue
		}
		until(u.HoldUntil)
		until(u.LastAttempt.Add(f.Policy.Limits.Cooldown))
		if !u.UnhealthyAt.IsZero() {
			at(lookAgain)
			if f.Cluster.Reach != object.Absent && f.withinGracePeriod() {
				at(blindFor)
			}
			until(u.UnhealthyAt.Add(f.Policy.Hold))
		}
		until(u.stepEnds(f.Policy))
	}
	if s.InMassFailure || len(s.Mass.Waited) > 0 {
		at(lookAgain)
	}
	for _, ended := range []time.Time{s.MassFailureEnded, f.Ledger.MassFailureEnded} {
		until(ended.Add(f.Policy.Limits.MassFailure.Cooldown))
	}
	for _, a := range s.InProgress() {
		at(lookAgain)
		if f.withinGracePeriod() {
			at(blindFor)
		}
		due, _ := s.focused(a).look(f, now).deadline()
		until(due)
	}
	return soonest
}
