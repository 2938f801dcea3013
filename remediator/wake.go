package remediator

import (
	"time"

	"scute.dev/kube/object"
)

// pollInterval is the interval at which scute reads facts that no watch reports: Nodes if the
// policy checks them, and etcd while a machine is unhealthy.
const pollInterval = 30 * time.Second

// RequeueAfter returns the time after which the owner must be reconciled even if no watch reports a
// change, or zero for never. It covers timeouts and facts that no watch reports, such as Nodes and
// etcd.
func RequeueAfter(s *State, f *Facts, now time.Time) time.Duration {
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
		return pollInterval // no watch reports the owner any more
	case !f.Owner.Found || f.Policy.Name == "" && s.Active == nil:
		return soonest
	}
	if in, ok := s.surveyIn(f, now); ok {
		at(in)
	}
	if in, ok := s.maintenanceIn(f, now); ok {
		at(in)
	}
	for m := range f.all() {
		if !m.Deleting {
			if h := Judge(m, s.record(m.UID).Mark, f.Policy.Checks, now); h.Remaining > 0 {
				at(h.Remaining)
			}
			if m.Node != "" && f.Policy.ReadsNodes() {
				at(pollInterval)
			}
			if m.staysUnhealthy() {
				at(pollInterval) // no watch reports the result of its MachineHealthCheck
			}
			if m.Request != nil && !s.record(m.UID).marked() {
				until(m.Request.Created.Add(settlePeriod))
			}
		}
	}
	for _, u := range s.Unhealthy {
		if !u.marked() {
			continue
		}
		until(u.HoldUntil)
		until(u.LastAttempt.Add(f.Policy.Limits.Cooldown))
		if !u.UnhealthyAt.IsZero() {
			at(pollInterval)
			if f.Cluster.Reachable != object.Absent && f.withinGracePeriod() {
				at(blindGracePeriod)
			}
			until(u.UnhealthyAt.Add(f.Policy.Hold))
		}
		until(u.stepDeadline(f.Policy))
	}
	if s.InMassFailure || len(s.Mass.Pending) > 0 {
		at(pollInterval)
	}
	until(s.massFailureCooldownEnd(f))
	for _, a := range s.InProgress() {
		at(pollInterval)
		if f.withinGracePeriod() {
			at(blindGracePeriod)
		}
		due, _ := s.focused(a).activeRemediation(f, now).deadline()
		until(due)
	}
	return soonest
}
