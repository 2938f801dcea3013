package remediator

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Outlook describes what scute expects to happen next to a machine, according to the log and the
// policy.
type Outlook struct {
	// Rule is the name of the rule of the last decision or of the freeze, or "" before a decision.
	Rule string `json:"rule,omitempty"`
	// Since is the start of the current step.
	Since time.Time `json:"since,omitzero"`
	// Next describes what the machine waits for.
	Next string `json:"next,omitempty"`
	// Until is when Then happens if the wait has not ended by then, or zero for never.
	Until time.Time `json:"until,omitzero"`
	Then  string    `json:"then,omitempty"`

	Held    bool `json:"held,omitempty"`
	Aborted bool `json:"aborted,omitempty"`
	Frozen  bool `json:"frozen,omitempty"`
}

const (
	thenCancelled = "the replacement is cancelled, and scute decides again"
	thenDecided   = "scute decides again"
)

// OutlookOf returns the outlook of a machine, from the same tables that Decide uses. ok is false if
// the machine is not marked and no remediation of it is in progress. OutlookOf uses the owner, the
// cluster, the machines, the policy and the learners of etcd in the facts, and omits what depends
// on missing facts. If the facts do not contain the voters of etcd, it uses the voters at the last
// decision.
func OutlookOf(s *State, uid types.UID, f *Facts, now time.Time) (o Outlook, ok bool) {
	u := s.record(uid)
	o.Rule, o.Held, o.Aborted = u.Decision.Rule, u.Held, u.Aborted
	switch a := s.activeOf(uid); {
	case a != nil:
		f = u.withVoters(f)
		s.focused(a).activeRemediation(f, now).addOutlook(&o)
	case u.marked():
		s.addOutlook(&o, u, f, now)
	default:
		return Outlook{}, false
	}
	return o, true
}

// withVoters returns the facts with a voter of etcd for each machine that has a Node and no member,
// if the facts contain no voters and the last decision counted that many. It assumes that a voter
// answers if it answered at the last decision and Cluster API does not report it as unhealthy.
func (u *UnhealthyMachine) withVoters(f *Facts) *Facts {
	if !f.isControlPlane() || f.Etcd == nil || f.Etcd.Err != "" || Count(f.Etcd).Voters > 0 {
		return f
	}
	members := slices.Clone(f.Etcd.Members)
	for m := range f.all() {
		if m.Node == "" || f.Etcd.member(m) != nil {
			continue
		}
		answers := object.True
		if slices.Contains(u.Evidence.Silent, m.Node) || m.Conditions[components[len(components)-1].condition].Status == object.False {
			answers = object.False
		}
		members = append(members, Member{Node: m.Node, Answers: answers})
	}
	known := *f
	if known.Etcd = (&Etcd{Members: members}); Count(known.Etcd).Voters != u.Evidence.Voters {
		return f
	}
	return &known
}

func (s *State) activeRemediation(f *Facts, now time.Time) remediation {
	s, f = s.activeView(f)
	return s.remediation(f, now)
}

// addOutlook adds the outlook of a remediation that has started.
func (r remediation) addOutlook(o *Outlook) {
	o.Since = r.Since
	_, message, next := r.progress(r.facts.Owner.Name)
	o.Next = message + formatIf(next != "", "; %s", next)
	if r.Frozen != "" {
		o.Rule, o.Since, o.Next, o.Frozen = r.Frozen, r.FrozenAt, "it continues when this has passed: "+r.FrozenReason, true
	}
	o.Until, o.Then = r.deadline()
}

// deadline returns the first time at which a transition or a freeze is due even if no fact changes,
// and a description of what happens then. It returns zero values if there is no such time.
func (r remediation) deadline() (first time.Time, then string) {
	if r.victim == nil && !r.in(settling) || !r.facts.Owner.Found {
		return time.Time{}, ""
	}
	sooner := func(due time.Time, what string) {
		if r.now.Before(due) && (first.IsZero() || due.Before(first)) {
			first, then = due, what
		}
	}
	for _, t := range stepOf(r.Step).exits {
		if t.due != nil {
			sooner(t.due(r), t.then)
		}
	}
	for i := range suspensions {
		if by := &suspensions[i]; by == r.by { // later suspensions do not apply while this one does
			break
		} else if by.due != nil {
			sooner(by.due(r), "it is frozen until the machine is gone; find out what blocks the deletion")
		}
	}
	return first, then
}

// addOutlook adds the outlook of a marked machine without a remediation in progress.
func (s *State) addOutlook(o *Outlook, u *UnhealthyMachine, f *Facts, now time.Time) {
	m := f.machine(u.Subject)
	o.Since = u.Mark.Since
	if u.Mark.State == Failing {
		o.Rule, o.Next = "", "it counts as unhealthy when the timeout of the check has passed"
		if m != nil {
			if h := Judge(m, u.Mark, f.Policy.Checks, now); h.State == Failing && h.Remaining > 0 && h.Remaining < idleWait { // otherwise only a change of the object ends the wait
				o.Until = now.Add(h.Remaining)
			}
		}
		return
	}
	d := u.Decision
	o.Since = u.DecidedAt
	o.Next, o.Frozen = s.decisionReason(u), d.Verdict == Freeze
	switch {
	case d.Verdict == "":
		o.Since, o.Next = u.MarkedAt, nextDecide
	case u.Evidence.DryRun && d.acts():
		o.Next = "nothing: the policy is a dry run"
	case u.EscalationStep != "":
		o.Since, o.Next = u.EscalationSince, "escalation step "+u.EscalationStep+" makes it healthy"
		o.Until, o.Then = u.stepDeadline(f.Policy), "the next step, or a replacement"
	default:
		o.Until, o.Then = s.waitEnd(u, m, f, now), thenDecided
	}
	if o.Until.IsZero() {
		o.Then = ""
	}
}

// stepDeadline returns when the timeout of the current escalation step expires. It returns zero if
// the policy no longer has the step.
func (u *UnhealthyMachine) stepDeadline(p Policy) time.Time {
	if step := stepNamed(p.Escalation, u.EscalationStep); step != nil {
		return u.EscalationSince.Add(step.Timeout)
	}
	return time.Time{}
}

// waitEnd returns when the rule that makes a machine wait no longer applies if no fact changes. It
// returns zero for a rule that does not depend on time.
func (s *State) waitEnd(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) time.Time {
	switch u.Decision.Rule {
	case ruleHold:
		return u.HoldUntil
	case rulePolicyHold:
		return u.UnhealthyAt.Add(f.Policy.Hold)
	case ruleCooldown:
		last := later(u.LastAttempt, s.ownerCooldown())
		return dueIf(!last.IsZero(), last.Add(f.Policy.Limits.Cooldown))
	case rulePolicyCooldown:
		return s.massFailureCooldownEnd(f)
	case ruleOwnerRetry:
		return f.ownerRetryTime(m)
	case ruleAnotherBroken, ruleRollout, ruleScaling:
		_, until := s.waitExpiry(u, m, f)
		return until
	case ruleWindow:
		return NextStart(slices.Concat(s.Starts, f.Ledger.Started), f.Policy.Limits.PerWindow, f.Policy.Limits.Window, now)
	case ruleMassFailureCooldown:
		return s.domainCooldownEnd(f, wholeFleet, f.Fleet.Limits.Mass)
	case ruleDomainCooldown:
		return s.domainCooldownEnd(f, u.Decision.Domain, f.Fleet.Limits.DomainMass)
	case ruleFleetWindow:
		return NextStart(slices.Concat(s.Starts, f.Fleet.Starts), f.Fleet.Limits.PerWindow, f.Fleet.Limits.Window, now)
	default:
		return time.Time{}
	}
}

// NextStart returns when a limit of starts within a window permits another start, given the times
// of earlier starts. It returns zero if the limit permits a start now, or if limit is not positive.
func NextStart(begun []time.Time, limit int, window time.Duration, now time.Time) time.Time {
	begun = within(begun, window, now)
	over := len(begun) - limit
	if limit <= 0 || over < 0 {
		return time.Time{}
	}
	slices.SortFunc(begun, time.Time.Compare)
	return begun[over].Add(window)
}

// within returns the times that are less than a window ago.
func within(times []time.Time, window time.Duration, now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool { return now.Sub(at) >= window })
}

// PolicyOf returns the policy of the owner's last recorded decisions, as namespace/name, and
// whether the policy was in dry run.
func PolicyOf(s *State) (policy string, dryRun bool) {
	var last Evidence
	for _, e := range s.History {
		last = e.Evidence
	}
	for _, u := range s.Unhealthy {
		if u.Evidence.PolicyName != "" {
			last = u.Evidence
		}
	}
	if last.PolicyName == "" {
		return "", false
	}
	return s.Owner.Namespace + "/" + last.PolicyName, last.DryRun
}

// CountStarted adds to the facts the times at which remediations of other owners started, as far as
// they are within the windows of the policy and of the fleet. Tools that read the log call it. all
// contains the states of all owners, including self.
func (f *Facts) CountStarted(self *State, all []*State, now time.Time) {
	for _, s := range all {
		if s == self {
			continue
		}
		if policy, _ := PolicyOf(s); policy == f.Owner.Namespace+"/"+f.Policy.Name {
			f.Ledger.Started = append(f.Ledger.Started, within(s.Starts, f.Policy.Limits.Window, now)...)
		}
		f.Fleet.Starts = append(f.Fleet.Starts, within(s.Starts, f.Fleet.Limits.Window, now)...)
	}
}
