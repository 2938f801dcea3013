package remediator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/view"
)

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

// unhealthy returns the records of machines, sorted by machine name, so that nothing depends on the order of a map.
func (s *State) unhealthy() []*UnhealthyMachine {
	return slices.SortedFunc(maps.Values(s.Unhealthy), func(a, b *UnhealthyMachine) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

// NeedsEtcdProbe reports whether the cluster's API server and etcd members must be queried before a
// decision, and these facts do not contain their answers yet. A query is needed if a machine is
// unhealthy, a remediation is in progress, or a survey or a defragmentation is due. It is not
// needed for unhealthy machines that only wait for a limit.
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

// onlyLimited reports whether a limit of the policy or of the fleet makes a machine wait, whatever
// etcd answers. A failing failure domain counts only if every method would create the replacement
// in a failing one, because the choice of the method may depend on etcd's answer.
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

// choose returns the decisions about all unhealthy machines, and the event that starts an action
// for the first machine that needs one. The other machines wait.
func choose(s *State, f *Facts, now time.Time) []Event {
	switch {
	case f.Policy.Name == "" || !f.Owner.Found:
		return nil
	case s.Active != nil:
		return append(decideDeleting(s, f), decideOthers(s, f, now)...)
	}
	events := decideDeleting(s, f)
	var first *UnhealthyMachine
	escalating := s.escalating()
	for _, u := range byUrgency(s, f) {
		m := f.machine(u.Subject)
		d := s.decide(u, m, f, now)
		if before := cmp.Or(first, escalating); d.acts() && before != nil && before != u {
			d = waitForTurn(before.Subject, f)
		}
		if d.Verdict == Freeze && f.withinGracePeriod() && u.Decision.Verdict != "" {
			continue // the last decision is valid during the grace period
		}
		begins := d.acts() && !f.Policy.DryRun && u.EscalationStep == ""
		if begins || !u.Decision.sameAs(d) { // the started action is recorded with the evidence for it
			events = append(events, Decided{Machine: u.Subject, Decision: d, Evidence: newEvidence(f)})
		}
		if begins {
			return append(events, startEvent(u, m, f, d, now)) // the next call decides about the others
		}
		if first == nil && d.acts() {
			first = u
		}
	}
	return events
}

// decideDeleting records that another client is deleting an unhealthy machine, so no further decision is made about it.
func decideDeleting(s *State, f *Facts) []Event {
	var events []Event
	for _, u := range s.unhealthy() {
		m := f.machine(u.Subject)
		if m == nil || !m.Deleting || !u.isUnhealthy() || s.activeOf(u.UID) != nil {
			continue
		}
		if d := *waitForDeletion(m); !u.Decision.sameAs(d) {
			events = append(events, Decided{Machine: u.Subject, Decision: d, Evidence: newEvidence(f)})
		}
	}
	return events
}

// decideOthers returns the decisions about the other unhealthy machines while a remediation is in
// progress. Rules about an operator's orders and earlier attempts take precedence over waiting for
// a turn. An earlier decision that needs a human remains: CannotRemediate until the remediation
// ends, Freeze until its cause ends.
func decideOthers(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	first := s.InProgress()[0]
	for _, u := range byUrgency(s, f) {
		if s.activeOf(u.UID) != nil || s.stillValid(u, f, now) {
			continue
		}
		d, before := waitForTurn(first.Victim, f), first
		if made := s.creatorOf(f.machine(u.Subject)); made != nil {
			before, d.Reason = made, "it was created in the remediation of machine "+made.Victim.Name+", which is still in progress"
		}
		if before.Frozen != "" {
			d.Reason, d.Next = d.Reason+"; its remediation is frozen ("+before.Frozen+")", before.FrozenNext
		}
		if s.mayStartBeside(u, f) {
			if other := s.decide(u, f.machine(u.Subject), f, now); !other.acts() || other.Verdict == Surge {
				d = other
			}
		}
		if other := firstOf(u, f.machine(u.Subject), f, now, checkForeignState, s.checkConsent, s.checkAttempts); other != nil {
			d = *other
		}
		if d.acts() || !u.Decision.sameAs(d) {
			events = append(events, Decided{Machine: u.Subject, Decision: d, Evidence: newEvidence(f)})
		}
		if d.acts() {
			return append(events, startEvent(u, f.machine(u.Subject), f, d, now))
		}
	}
	return events
}

// stillValid reports whether an earlier decision that needs a human is still valid.
func (s *State) stillValid(u *UnhealthyMachine, f *Facts, now time.Time) bool {
	switch u.Decision.Verdict {
	case CannotRemediate:
		return true
	case Freeze:
		d := s.decide(u, f.machine(u.Subject), f, now)
		return d.Verdict == Freeze && d.Rule == u.Decision.Rule || f.withinGracePeriod()
	default:
		return false
	}
}

// waitForTurn returns the decision that makes a machine wait until another machine, before, was
// replaced. The reason contains the longest time that this, or its cancellation, may take.
func waitForTurn(before Subject, f *Facts) Decision {
	t, atATime := f.Policy.Timeouts, "one at a time"
	if n := f.Policy.Limits.WorkersAtOnce; n > 1 && !f.isControlPlane() && !f.Owner.OnDelete {
		atATime = fmt.Sprintf("%d at a time", n)
	}
	return Decision{Verdict: Wait, Rule: ruleTurn, Reason: fmt.Sprintf(
		"machine %s comes first (%s, the most broken first); it is replaced, or its replacement is cancelled, within %s", before.Name, atATime, view.Duration(t.ScaleUp+t.Ready+t.Removal))}
}

// escalating returns the machine with an escalation step in progress, or nil. Nothing is started
// for another machine meanwhile, not even for a more urgent one, because the step may make the
// machine unavailable at any moment.
func (s *State) escalating() *UnhealthyMachine {
	return pick(s.unhealthy(), func(u *UnhealthyMachine) bool { return u.EscalationStep != "" && u.marked() })
}

// sameAs reports whether a decision equals another, so that it need not be recorded again. It
// compares reasons only for rules whose reason is stable (comparesReason), because other reasons
// contain changing numbers or errors. It always compares Next, so that new advice to the operator
// is recorded.
func (d Decision) sameAs(other Decision) bool {
	if d.Verdict != Escalate && !comparesReason(d.Rule) { // the reason of Escalate names the step
		other.Reason = d.Reason
	}
	return d == other
}

// comparesReason reports whether a change of the reason of a rule must be recorded. Such a reason
// names another object, quotes users, or names a time, and only changes if one of them does.
func comparesReason(rule string) bool {
	return slices.Contains([]string{
		ruleTurn, ruleHold, rulePolicyHold, ruleCooldown, rulePolicyCooldown, ruleOwnerRetry, ruleUnreadable, ruleDomainCooldown, rulePauseRequests, ruleMove, ruleHook,
		freezeHeld, ruleFleetPaused, ruleHealthCheck, ruleUnreadableLimits, ruleMassFailureCooldown, ruleDeletingMachine,
	}, rule)
}

func (d Decision) acts() bool {
	return slices.Contains([]Verdict{RolloutSurge, Surge, OwnerRemediation, Escalate}, d.Verdict)
}

// byUrgency returns the unhealthy machines that are not being deleted, sorted: first machines whose
// etcd member does not answer, then machines with broken components, then all others. In each
// group, the machine that has been unhealthy longest comes first.
func byUrgency(s *State, f *Facts) []*UnhealthyMachine {
	list := slices.DeleteFunc(s.unhealthy(), func(u *UnhealthyMachine) bool {
		m := f.machine(u.Subject)
		return m == nil || m.Deleting || !u.isUnhealthy()
	})
	slices.SortStableFunc(list, func(a, b *UnhealthyMachine) int {
		return cmp.Or(cmp.Compare(f.urgency(a), f.urgency(b)), a.UnhealthyAt.Compare(b.UnhealthyAt))
	})
	return list
}

func (f *Facts) urgency(u *UnhealthyMachine) int {
	m := f.machine(u.Subject)
	switch {
	case !f.isControlPlane():
		return 0
	case !f.Owner.ExternalEtcd && !f.etcdAnswers(m):
		return 0
	case f.isBroken(m):
		return 1
	default:
		return 2
	}
}

// etcdAnswers reports whether the machine's own etcd member answered and is healthy.
func (f *Facts) etcdAnswers(m *Machine) bool {
	return f.Etcd.member(m).answering()
}

func startEvent(u *UnhealthyMachine, m *Machine, f *Facts, d Decision, now time.Time) Event {
	attempt := u.Attempts + 1
	switch d.Verdict {
	case Escalate:
		step := u.nextStep(f.Policy.Escalation)
		return EscalationStarted{Machine: u.Subject, Step: step.Name, Object: step.object(u.Name)}
	case OwnerRemediation:
		return HandedOver{Machine: u.Subject, Baseline: f.baseline(), Attempt: attempt}
	default:
		e := SurgeRequested{Machine: u.Subject, Method: d.Verdict, Relaxed: d.Relaxed, Baseline: f.baseline(), Attempt: attempt}
		e.From, e.To, e.Where = f.Owner.Replicas, f.Owner.Replicas, AtOwner
		if d.Verdict == RolloutSurge {
			e.Trigger, e.Original, e.TriggerValue = f.trigger(m, now)
			return e
		}
		if f.Cluster.Topology {
			e.From, e.Where, e.Entry, e.Cluster = f.Cluster.TopologyReplicas, AtTopology, f.Cluster.Entry, f.Cluster.UID
		}
		e.To = e.From + f.surgeReplicas()
		return e
	}
}

// trigger returns the field whose change makes a machine outdated, with its original and its new
// value. The field is the expiry of the certificates if the owner replaces machines before that
// expiry, otherwise the name of the template that the machine was cloned from.
func (f *Facts) trigger(m *Machine, now time.Time) (trigger RolloutTrigger, original, pull string) {
	if f.Owner.CertificateTrigger {
		pull = utc(now)
		if pull == m.Certificates { // another log set it a moment ago: the value must differ
			pull = utc(now.Add(-time.Second))
		}
		return TriggerCertificates, m.Certificates, pull
	}
	return TriggerClonedFrom, m.ClonedFrom, m.ClonedFrom + "-replaced-by-scute"
}

// surgeReplicas returns by how many a surge raises the replicas. With stacked etcd it returns two,
// because a control plane refuses an even number of replicas. For workers it adds the number of
// machines that are being deleted, because their owner counts them as existing.
func (f *Facts) surgeReplicas() int32 {
	if f.isControlPlane() {
		return 2 - int32(boolToInt(f.Owner.ExternalEtcd)) //nolint:gosec // 0 or 1
	}
	return 1 + int32(f.deletingMachines()) //nolint:gosec // few
}

func (f *Facts) baseline() []Subject {
	list := make([]Subject, 0, len(f.Machines))
	for i := range f.Machines {
		list = append(list, f.Machines[i].subject())
	}
	return list
}

func newEvidence(f *Facts) Evidence {
	q := Count(f.Etcd)
	seen := Evidence{
		Replicas: f.Owner.Replicas, Machines: len(f.Machines), External: f.Owner.ExternalEtcd, Voters: q.Voters, Learners: q.Learners,
		Silent: q.Silent, Version: f.Owner.Version, MaxSurge: f.Owner.MaxSurge, PolicyName: f.Policy.Name, DryRun: f.Policy.DryRun,
	}
	if f.Etcd != nil {
		seen.EtcdError = f.Etcd.Err
		seen.Leader, seen.Joining = f.Etcd.roles()
		for _, m := range f.Etcd.Members {
			if m.Via != "" && m.Via != PortForward {
				seen.Fallbacks = append(seen.Fallbacks, m.Node+" by "+m.Via)
			}
		}
	}
	seen.Ready = len(f.where(f.ready))
	seen.Deleting = f.names(func(m *Machine) bool { return m.Deleting })
	seen.Broken = f.names(func(m *Machine) bool { return f.isControlPlane() && !m.Deleting && f.isBroken(m) })
	return seen
}
