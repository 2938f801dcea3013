package remediator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// NeedsEtcdProbe reports whether a decision on these facts needs a request to the cluster's API
// server and etcd members, and none was sent yet. That is so if a machine is unhealthy, a
// remediation is in progress, or a survey or a defragmentation is due. No request is needed while
// limits keep all unhealthy machines waiting.
func NeedsEtcdProbe(s *State, f *Facts, now time.Time) bool {
	if !f.isControlPlane() || f.isInitializing() || !f.Owner.Found || f.Cluster.Reachable != object.Absent {
		return false
	}
	if in, ok := s.surveyIn(f, now); ok && in == 0 {
		return true
	}
	if in, ok := s.maintenanceIn(f, now); ok && in == 0 {
		return true
	}
	return s.Active != nil || slices.ContainsFunc(s.unhealthy(), func(u *UnhealthyMachine) bool {
		return u.isUnhealthy() && !s.onlyLimited(u, f, now)
	})
}

// onlyLimited reports whether only a limit of the policy or of the fleet decides about a machine. A
// failing failure domain is such a limit only if every method would create the replacement in one,
// because the method may depend on etcd's answer.
func (s *State) onlyLimited(u *UnhealthyMachine, f *Facts, now time.Time) bool {
	m := f.machine(u.Subject)
	if m == nil || f.Policy.Name == "" {
		return false
	}
	if firstOf(u, m, f, now, checkForeignState, s.checkConsent, s.checkAttempts) != nil {
		return false
	}
	d := s.checkLimits(u, m, f, now)
	if d == nil || d.Verdict != Wait {
		return false
	}
	return d.Rule != ruleFailureDomain && d.Rule != ruleDomainCooldown || s.noDestination(m, f, now)
}

// Surging reports whether an owner is creating the replacement in a surge, or is about to delete
// the unhealthy machine. Decisions and writes then do not count etcd's members, so an answer that
// is some seconds old is sufficient.
func Surging(s *State) bool {
	a := s.Active
	return a != nil && a.Request.Method != OwnerRemediation && a.Frozen == "" && slices.Contains([]Step{requesting, replacing, removing}, a.Step)
}

// Decide returns the events that follow from an observation. The caller applies them and calls it
// again until it returns none. It depends only on the state and the facts; the order of the
// machines makes no difference.
func Decide(s *State, f *Facts, now time.Time) []Event {
	for _, rule := range []func(*State, *Facts, time.Time) []Event{checkClock, updateMarks, recordEtcd, recordOrders, endEscalations, endPolicyMassFailure, endMassFailures, maintain, advance, choose} {
		if events := rule(s, f, now); len(events) > 0 {
			if s.Owner.UID == "" {
				events = append([]Event{Registered{Owner: f.Owner.Owner}}, events...)
			}
			return events
		}
	}
	return nil
}

// unhealthy returns the records of machines in the order of their names, so that nothing depends on the order of a map.
func (s *State) unhealthy() []*UnhealthyMachine {
	return slices.SortedFunc(maps.Values(s.Unhealthy), func(a, b *UnhealthyMachine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

// updateMarks records which machines are unhealthy, and which no longer are.
func updateMarks(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for m := range f.all() {
		if m.Deleting || f.Policy.Name == "" || f.Policy.Unreadable != "" || !f.Owner.Found {
			continue // without a readable policy it is unknown which machines are unhealthy, so marks stay
		}
		u := s.record(m.UID)
		h := Judge(m, u.Mark, f.Policy.Checks, now)
		switch {
		case h.State == "" && u.marked():
			why := "the machine is healthy again"
			if u.hasNotice() {
				why = "the notice is gone"
			}
			events = append(events, MachineMarkCleared{Machine: m.subject(), Cause: Recovered, Reason: why})
		case h.State != "" && !u.matches(h):
			h.Machine, h.Since, h.FailureDomain = m.subject(), cmp.Or(h.Since, now), f.domain(m.FailureDomain)
			events = append(events, h.MachineMarked)
		}
	}
	for _, u := range s.unhealthy() {
		if !u.marked() || s.activeOf(u.UID) != nil && f.Policy.Name != "" {
			continue // the remediation itself records its end
		}
		switch m := f.machine(u.Subject); {
		case f.Policy.Name == "":
			events = append(events, MachineMarkCleared{Machine: u.Subject, Cause: Deselected, Reason: "no RepairPolicy selects the machine"})
		case m == nil:
			events = append(events, MachineMarkCleared{Machine: u.Subject, Cause: MachineGone, Reason: "the machine is gone"})
		}
	}
	return events
}

// matches reports whether the recorded mark equals the present health. It ignores Since.
func (u *UnhealthyMachine) matches(h Health) bool {
	mark := u.Mark
	return mark.State == h.State && mark.Reason == h.Reason && mark.Source == h.Source &&
		mark.Failing == h.Failing && maps.EqualFunc(mark.FailingSince, h.FailingSince, time.Time.Equal)
}

func (u *UnhealthyMachine) marked() bool { return u.Mark.State != "" }

// isUnhealthy reports whether the machine is marked, and not only failing a check.
func (u *UnhealthyMachine) isUnhealthy() bool { return u.Mark.State == Unhealthy }

// recordOrders records the holds and aborts that operators wrote on the requests. An order ends
// only when it is removed from the request that it was written on. A request that is created later
// does not have it yet; it is copied to that request.
func recordOrders(s *State, f *Facts, _ time.Time) []Event {
	var events []Event
	for _, u := range s.unhealthy() {
		if m := f.machine(u.Subject); m != nil && m.Request != nil {
			events = append(events, u.recordOrders(m.Request)...)
		}
	}
	return events
}

// recordOrders returns the events for the orders of a request that the log does not have yet. The
// machine may be healthy again.
func (u *UnhealthyMachine) recordOrders(r *Request) []Event {
	var events []Event
	released := u.Held && !r.Hold && !r.lacksOrderOf(u.HeldBy) || u.Aborted && !r.Abort && !r.lacksOrderOf(u.AbortedBy)
	if released {
		events = append(events, HoldReleased{Machine: u.Subject})
	}
	if r.Abort && (released || !u.Aborted || r.lacksOrderOf(u.AbortedBy)) {
		events = append(events, AbortRequested{Machine: u.Subject, Request: r.UID})
	}
	if r.Hold && (released || !u.Held || r.lacksOrderOf(u.HeldBy) || !u.HoldUntil.Equal(r.HoldUntil) || u.HoldReason != r.HoldReason) {
		events = append(events, HoldSet{Machine: u.Subject, Until: r.HoldUntil, Reason: r.HoldReason, Request: r.UID})
	}
	return events
}

// lacksOrderOf reports whether an order was written on an earlier request and is not copied to this
// request yet. said is the UID of the earlier request, or "" in older logs.
func (r *Request) lacksOrderOf(said types.UID) bool {
	return said != "" && said != r.UID && !r.OrdersCopied
}

// lacksOrder reports whether this request lacks an order of an earlier request. An order is valid
// as long as the machine exists, so it is copied to the request, where an operator can remove it.
func (u *UnhealthyMachine) lacksOrder(r *Request, now time.Time) bool {
	return u.Aborted && !r.Abort && r.lacksOrderOf(u.AbortedBy) || u.held(now) && !r.Hold && r.lacksOrderOf(u.HeldBy)
}

func (u *UnhealthyMachine) hasOrder() bool { return u.Aborted || u.Held }

func (u *UnhealthyMachine) held(now time.Time) bool {
	return u.Held && (u.HoldUntil.IsZero() || now.Before(u.HoldUntil))
}

// heldUntil returns when the holds of an operator and of the policy end. It returns zero for a hold without an end.
func (u *UnhealthyMachine) heldUntil(p Policy) time.Time {
	if u.Held && u.HoldUntil.IsZero() {
		return time.Time{}
	}
	return later(u.UnhealthyAt.Add(p.Hold), u.HoldUntil)
}

// endEscalations ends the escalation steps that have timed out, have failed, or were cancelled.
func endEscalations(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for _, u := range s.unhealthy() {
		m := f.machine(u.Subject)
		if u.EscalationStep == "" || m == nil || f.Policy.Unreadable != "" {
			continue
		}
		failed := m.FailedSteps[u.EscalationStep]
		ended := EscalationEnded{Machine: u.Subject, Step: u.EscalationStep, Reason: failed}
		switch {
		case failed != "":
			ended.Outcome = stepFailed
		case stepNamed(f.Policy.Escalation, u.EscalationStep) == nil || u.Aborted || m.Skip:
			ended.Outcome = stepCancelled
		case !now.Before(u.stepDeadline(f.Policy)):
			ended.Outcome = stepTimedOut
		default:
			continue
		}
		events = append(events, ended)
	}
	return events
}

// endPolicyMassFailure records that a mass failure of the policy that kept this owner waiting has ended.
func endPolicyMassFailure(s *State, f *Facts, _ time.Time) []Event {
	return eventIf(s.InMassFailure && !f.inMassFailure() && f.Policy.Unreadable == "", PolicyMassFailurePassed{})
}

// inMassFailure reports whether enough machines of the policy are unhealthy for a mass failure.
func (f *Facts) inMassFailure() bool {
	return f.Policy.Name != "" && f.Policy.Unreadable == "" && f.Policy.Limits.MassFailure.reached(f.Ledger.Unhealthy, f.Ledger.Watched)
}
