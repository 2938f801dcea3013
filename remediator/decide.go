package remediator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// NeedsEtcdProbe says that a decision on these facts needs the cluster asked (its API server, and etcd's members): something is
// unhealthy or in progress, or a survey is due, and the cluster was not asked yet. Otherwise nothing is asked, nor while limits keep
// all unhealthy machines waiting.
func NeedsEtcdProbe(s *State, f *Facts, now time.Time) bool {
	if !f.isControlPlane() || f.starting() || !f.Owner.Found || f.Cluster.Reach != object.Absent {
		return false
	}
	if in, ok := s.surveyIn(f, now); ok && in == 0 {
		return true
	}
	if in, ok := s.careIn(f, now); ok && in == 0 {
		return true
	}
	return s.Active != nil || slices.ContainsFunc(s.unhealthy(), func(u *UnhealthyMachine) bool {
		return u.Mark != nil && u.Mark.State == Unhealthy && !s.limited(u, f, now)
	})
}

// limited says that nothing but a limit decides about a machine, of the policy or of the fleet. Where its replacement would be made
// may depend on the method, and so on what etcd answers.
func (s *State) limited(u *UnhealthyMachine, f *Facts, now time.Time) bool {
	m := f.machine(u.Subject)
	if m == nil || f.Policy.Name == "" {
		return false
	}
	if firstOf(u, m, f, now, foreignState, s.consent, s.patience) != nil {
		return false
	}
	d := s.limits(u, m, f, now)
	if d == nil || d.Verdict != Wait {
		return false
	}
	return d.Rule != ruleFailureDomain && d.Rule != ruleDomainCooldown || s.nowhere(m, f, now)
}

// Surging says that an owner is on its way to another machine, and nothing that is decided or asked for meanwhile counts
// etcd's members: an answer of theirs that is some seconds old will do.
func Surging(s *State) bool {
	a := s.Active
	return a != nil && a.Request.Method != OwnerRemediation && a.Frozen == "" && slices.Contains([]Step{Requesting, Replacing, Removing}, a.Step)
}

// Decide returns the events that follow from an observation. It is called again with these applied, until it returns
// none. It depends only on the state and the facts; the order of the machines makes no difference.
func Decide(s *State, f *Facts, now time.Time) []Event {
	for _, rule := range []func(*State, *Facts, time.Time) []Event{clock, marks, report, orders, escalation, policyMassFailure, massFailures, care, advance, choose} {
		if events := rule(s, f, now); len(events) > 0 {
			if s.Owner.UID == "" {
				events = append([]Event{Registered{Owner: f.Owner.Owner}}, events...)
			}
			return events
		}
	}
	return nil
}

// unhealthy returns them in the order of their names, so that nothing depends on the order of a map.
func (s *State) unhealthy() []*UnhealthyMachine {
	list := make([]*UnhealthyMachine, 0, len(s.Unhealthy))
	for _, u := range s.Unhealthy {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b *UnhealthyMachine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return list
}

// marks says which machines are unhealthy, and which no longer are.
func marks(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for m := range f.all() {
		if m.Deleting || f.Policy.Name == "" || f.Policy.Unreadable != "" || !f.Owner.Found {
			continue // without a readable policy it is unknown which machines are unhealthy: marks stay as they are
		}
		u := s.Unhealthy[m.UID]
		h := Judge(m, u.mark(), f.Policy.Checks, now)
		switch {
		case h.State == "" && u != nil && u.Mark != nil:
			why := "healthy again"
			if u.noticed() {
				why = "no notice says any more that it stops"
			}
			events = append(events, MachineMarkCleared{Machine: m.subject(), Cause: Recovered, Why: why})
		case h.State != "" && !u.says(h):
			mark := MachineMarked{Machine: m.subject(), State: h.State, Reason: h.Reason, Source: h.Source, Since: h.Since, FailureDomain: f.domain(m.FailureDomain), Seen: h.Seen, Failing: h.Failing}
			if mark.Since.IsZero() {
				mark.Since = now
			}
			events = append(events, mark)
		}
	}
	for _, u := range s.unhealthy() {
		if u.Mark == nil || s.activeOf(u.UID) != nil && f.Policy.Name != "" {
			continue // the end of the active one is recorded by the remediation itself
		}
		switch m := f.machine(u.Subject); {
		case f.Policy.Name == "":
			events = append(events, MachineMarkCleared{Machine: u.Subject, Cause: Deselected, Why: "no RepairPolicy selects it"})
		case m == nil:
			events = append(events, MachineMarkCleared{Machine: u.Subject, Cause: MachineGone, Why: "it is gone"})
		}
	}
	return events
}

// says reports that the present mark equals what was observed now. A condition of which only the time changed is no
// change.
func (u *UnhealthyMachine) says(h Health) bool {
	return u != nil && u.Mark != nil && u.Mark.State == h.State && u.Mark.Reason == h.Reason && u.Mark.Source == h.Source &&
		u.Mark.Failing == h.Failing && maps.EqualFunc(u.Mark.Seen, h.Seen, time.Time.Equal)
}

// mark that the log has of a machine, nil without.
func (u *UnhealthyMachine) mark() *MachineMarked {
	if u == nil {
		return nil
	}
	return u.Mark
}

// orders takes in what operators wrote on the requests. A hold or an abort ends only when the request that said it no longer
// does: a request that is made later says nothing yet, and gets both written on it.
func orders(s *State, f *Facts, _ time.Time) []Event {
	var events []Event
	for _, u := range s.unhealthy() {
		if m := f.machine(u.Subject); m != nil && m.Request != nil {
			events = append(events, u.hears(m.Request)...)
		}
	}
	return events
}

// hears is what a request says that the log does not have yet. That of a machine that is well again is heard too: it is about to go.
func (u *UnhealthyMachine) hears(r *Request) []Event {
	var events []Event
	released := u.Held && !r.Hold && !r.after(u.HeldBy) || u.Aborted && !r.Abort && !r.after(u.AbortedBy)
	if released {
		events = append(events, HoldReleased{Machine: u.Subject})
	}
	if r.Abort && (released || !u.Aborted || r.after(u.AbortedBy)) {
		events = append(events, AbortRequested{Machine: u.Subject, Request: r.UID})
	}
	if r.Hold && (released || !u.Held || r.after(u.HeldBy) || !u.HoldUntil.Equal(r.HoldUntil) || u.HoldWhy != r.HoldWhy) {
		events = append(events, HoldSet{Machine: u.Subject, Until: r.HoldUntil, Reason: r.HoldWhy, Request: r.UID})
	}
	return events
}

// after says that an order was said on an earlier request than this one, and was not written on it. Older logs do not know on which.
func (r *Request) after(said types.UID) bool { return said != "" && said != r.UID && !r.Carried }

// missed says that an order of an earlier request is not on this one. It counts as long as the machine lives, so it is written
// there, where an operator can take it off.
func (u *UnhealthyMachine) missed(r *Request, now time.Time) bool {
	return u.Aborted && !r.Abort && r.after(u.AbortedBy) || u.held(now) && !r.Hold && r.after(u.HeldBy)
}

// ordered says that an operator aborted or holds it.
func (u *UnhealthyMachine) ordered() bool { return u.Aborted || u.Held }

// held by an operator, at this time.
func (u *UnhealthyMachine) held(now time.Time) bool {
	return u.Held && (u.HoldUntil.IsZero() || now.Before(u.HoldUntil))
}

// heldUntil is when what an operator and the policy hold it for is over, zero for nothing, or no end.
func (u *UnhealthyMachine) heldUntil(p Policy) time.Time {
	if u == nil || u.Held && u.HoldUntil.IsZero() {
		return time.Time{}
	}
	ends := u.UnhealthyAt.Add(p.Hold)
	if u.Held && u.HoldUntil.After(ends) {
		ends = u.HoldUntil
	}
	return ends
}

// escalation ends an escalation step whose time is over, that has failed, or that an operator has cancelled.
func escalation(s *State, f *Facts, now time.Time) []Event {
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
			ended.Outcome = StepFailed
		case stepNamed(f.Policy.Escalation, u.EscalationStep) == nil || u.Aborted || m.Skip:
			ended.Outcome = StepCancelled
		case !now.Before(u.stepEnds(f.Policy)):
			ended.Outcome = StepTimedOut
		default:
			continue
		}
		events = append(events, ended)
	}
	return events
}

// policyMassFailure records that a mass failure of the policy that kept this owner waiting has ended.
func policyMassFailure(s *State, f *Facts, _ time.Time) []Event {
	if s.InMassFailure && !f.massFailure() && f.Policy.Unreadable == "" {
		return []Event{StormPassed{}}
	}
	return nil
}

// massFailure reports whether as many machines of the policy are unhealthy as make a mass failure.
func (f *Facts) massFailure() bool {
	return f.Policy.Name != "" && f.Policy.Unreadable == "" && f.Policy.Limits.MassFailure.reached(f.Ledger.Unhealthy, f.Ledger.Watched)
}
