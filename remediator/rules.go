package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

// Names of rules that are used in several places. docs/remediation.md describes every rule.
const (
	// rulePolicyMassFailure makes machines wait for the end of a mass failure of the policy.
	rulePolicyMassFailure = "policy-mass-failure"

	ruleAnotherBroken   = "another-broken" // other machines have broken components
	ruleAttempts        = "attempts"
	ruleDeletingMachine = "deleting-machine"
	ruleHealthCheck     = "health-check"
	ruleHook            = "hook"
	ruleMove            = "move"
	rulePauseRequests   = "pause-requests"
	ruleRollout         = "rollout"
	ruleRolloutBlocked  = "rollout-blocked" // a rollout waits for the machine, or does not move it
	ruleScaling         = "scaling"
	ruleTurn            = "one-at-a-time" // another machine of the owner comes first
	ruleUnreadable      = "unreadable-policy"

	// Rules that wait until a time: see State.waitEnd.
	ruleCooldown       = "cooldown"
	ruleHold           = "hold"
	ruleOwnerRetry     = "owner-retry-period"
	rulePolicyCooldown = "policy-mass-failure-cooldown"
	rulePolicyHold     = "policy-hold"

	// Rules of limits.
	ruleAtOnce       = "at-once"
	ruleDomainAtOnce = "failure-domain-at-once"
	ruleFleetAtOnce  = "fleet-at-once"
	ruleFleetWindow  = "fleet-window"
	ruleWindow       = "window"

	// Rules of the fleet.
	ruleDomainCooldown      = "failure-domain-cooldown"
	ruleFailureDomain       = "failure-domain"
	ruleFleetPaused         = "fleet-paused"
	ruleMassFailure         = "mass-failure"
	ruleMassFailureCooldown = "mass-failure-cooldown"
	ruleUnreadableLimits    = "unreadable-limits"
)

// OfLimit reports whether a rule belongs to a limit of the policy or the fleet, which makes a
// machine wait until other machines are replaced.
func OfLimit(rule string) bool {
	return slices.Contains([]string{ruleAtOnce, ruleWindow, ruleFleetAtOnce, ruleFleetWindow, ruleDomainAtOnce}, rule)
}

// nextAtLimit returns advice for users about the remediations in progress that use up the limit in
// a setting.
func nextAtLimit(setting string) string {
	return "run `scutectl get machines` to see them (one of another owner counts for " + view.Duration(CountsFor) + " at most); if one takes long, find out why; or raise " + setting
}

func (p Policy) unreadableReason() string {
	return "RepairPolicy " + p.Name + " cannot be read: " + p.Unreadable
}

func (p Policy) correctAdvice() string { return "correct RepairPolicy " + p.Name }

func wait(rule, format string, args ...any) *Decision {
	return &Decision{Verdict: Wait, Rule: rule, Reason: fmt.Sprintf(format, args...)}
}

// waitForHuman returns a wait that a human can end. next describes how.
func waitForHuman(next, rule, format string, args ...any) *Decision {
	return &Decision{Verdict: Wait, Rule: rule, Reason: fmt.Sprintf(format, args...), Next: next}
}

func freeze(next, rule, format string, args ...any) *Decision {
	return &Decision{Verdict: Freeze, Rule: rule, Reason: fmt.Sprintf(format, args...), Next: next}
}

func cannotRemediate(next, rule, format string, args ...any) *Decision {
	return &Decision{Verdict: CannotRemediate, Rule: rule, Reason: fmt.Sprintf(format, args...), Next: next}
}

type rule func(*UnhealthyMachine, *Machine, *Facts, time.Time) *Decision

func firstOf(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time, rules ...rule) *Decision {
	for _, rule := range rules {
		if d := rule(u, m, f, now); d != nil {
			return d
		}
	}
	return nil
}

// decide applies the rules in their order. The first rule that applies decides.
func (s *State) decide(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) Decision {
	if d := firstOf(u, m, f, now, checkForeignState, s.checkConsent, s.checkAttempts, s.checkLimits, s.checkDangers, s.escalate); d != nil {
		return *d
	}
	d := s.chooseMethod(u, m, f, now)
	if other := cmp.Or(f.checkLeftovers(d, m), f.checkOwnerRetries(d, m, now)); other != nil && d.acts() {
		return *other
	}
	return d
}

// chooseMethod returns how the machine should be replaced if no rule prevents it. In two cases it
// chooses a method that deletes the machine first, if that is safe and the policy allows it. The
// first case is that no replacement was ready in time, and the policy accepts that the machine is
// deleted first. The second is that the machine has waited for `timeouts.scaleUp` until broken
// components of other machines recover. The owner creates no machine before they do, which may
// never happen.
func (s *State) chooseMethod(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) Decision {
	stranded := s.strandedMachines(f)
	choose := decideWorker
	if f.isControlPlane() {
		choose = func(m *Machine, f *Facts) Decision { return decideControlPlane(m, f, stranded) }
	}
	if first, due := s.waitExpired(u, m, f, now); due {
		return first
	}
	d := choose(m, f)
	if d.Verdict == RolloutSurge && u.RolloutTimedOut && f.Policy.allows(v1alpha1.MethodSurge) {
		if other := caseOf(m, f, stranded).byReplicas(d.Rule, d.Reason, d.Relaxed); other.acts() {
			d = other
		}
	}
	if !u.ReplacementTimedOut || !f.Policy.AllowsDeleteFirst || d.Verdict != Surge && d.Verdict != RolloutSurge {
		return d
	}
	if first := f.decideDeleteFirst(m, stranded); first.Verdict == OwnerRemediation {
		return first
	}
	return d
}

// waitExpired returns the decision of waitExpiry, and whether it applies now.
func (s *State) waitExpired(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) (Decision, bool) {
	first, from := s.waitExpiry(u, m, f)
	return first, !from.IsZero() && !now.Before(from)
}

// waitExpiry returns the decision that ends a wait that could last forever, and the time from which
// it applies, or zero values for no such wait. A control plane machine may wait forever for broken
// components of other machines: until they are healthy, its owner remediates, but does not create
// machines, roll out or scale. A worker that never joined may wait forever for a rollout that moves
// only the other machines of its MachineSet.
func (s *State) waitExpiry(u *UnhealthyMachine, m *Machine, f *Facts) (first Decision, from time.Time) {
	if f.leftByUpdate(m) {
		return Decision{
			Verdict: OwnerRemediation, Rule: ruleRolloutBlocked,
			Reason: "it never joined, and MachineSet " + m.Set + " moves only machines that have joined, for an update in place: asked to remediate this one, it deletes it",
		}, u.UnhealthyAt.Add(f.Policy.Timeouts.ScaleUp)
	}
	if !f.isControlPlane() || f.blockingRule(m) != "" || f.Cluster.UpgradePending || f.Owner.MaxSurge == 0 && !f.Policy.AllowsDeleteFirst {
		return Decision{}, time.Time{}
	}
	c := caseOf(m, f, s.strandedMachines(f))
	if len(c.others) == 0 || c.checkSilentVoter() != nil || !f.hasEnoughMembers(m, false) || !f.hasEnoughMembers(m, true) { // the owner would refuse, or could not create another machine
		return Decision{}, time.Time{}
	}
	from = u.UnhealthyAt
	for other := range f.all() {
		if other.UID == m.UID {
			continue
		}
		if other.Node == "" || other.Deleting { // the owner waits for it
			return Decision{}, time.Time{}
		}
		for _, since := range []time.Time{other.brokenSince(), other.Conditions[clusterv1.MachineNodeReadyCondition].Since} { // not before it became a Node
			if slices.Contains(c.others, other.Name) && since.After(from) {
				from = since
			}
		}
	}
	first = c.deleteFirst("another-stays-broken", "components of "+strings.Join(c.others, ", ")+" are unhealthy, and its owner creates no machine until they recover")
	return first, dueIf(first.acts(), from.Add(f.Policy.Timeouts.ScaleUp))
}

// checkForeignState returns a wait if something else controls the owner, such as a move, a pause or
// another MachineHealthCheck, or if scute cannot request replacements from an owner of this kind.
// It returns nil otherwise.
func checkForeignState(_ *UnhealthyMachine, m *Machine, f *Facts, _ time.Time) *Decision {
	if d := checkOwnerKind(m, f); d != nil {
		return d
	}
	switch {
	case f.Owner.Deleting || f.Cluster.Deleting:
		return wait("deleting", "%s is being deleted", f.Owner.Name)
	case f.Move != "":
		return wait(ruleMove, "the cluster is being moved: %s", f.Move)
	case f.Cluster.Paused:
		return waitForHuman("remove the pause", "paused", "cluster %s is paused", f.Owner.Cluster)
	case f.Owner.Paused:
		return waitForHuman("remove the pause", "paused", "%s %s is paused", f.Owner.Kind, f.Owner.Name)
	case m.OtherHealthCheck != "":
		return waitForHuman("set its templateRef to SurgeRemediationTemplate scute-"+f.Policy.Name+", or delete it", ruleHealthCheck, "MachineHealthCheck %s remediates the machine itself, without scute", m.OtherHealthCheck)
	default:
		return nil
	}
}

// checkConsent returns a wait or a freeze if a human or the policy does not permit a replacement
// now, and nil otherwise.
func (s *State) checkConsent(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	switch {
	case f.Policy.Unreadable != "":
		return &Decision{Verdict: Freeze, Rule: ruleUnreadable, Reason: f.Policy.unreadableReason() + "; nothing starts", Next: f.Policy.correctAdvice()}
	case f.checkPauseRequests() != nil:
		return f.checkPauseRequests()
	case m.Skip:
		return waitForHuman("remove the annotation", "skip-remediation", "the machine has the annotation cluster.x-k8s.io/skip-remediation")
	case m.Paused:
		return waitForHuman("remove the annotation", "paused", "the machine has the annotation cluster.x-k8s.io/paused")
	case u.Aborted:
		return &Decision{Verdict: Wait, Rule: "aborted", Reason: "an operator aborted it: nothing starts for the machine", Next: "release the machine, and scute decides again"}
	case u.held(now):
		return waitForHuman(nextRelease, ruleHold, "%s", u.describeHold())
	case now.Before(u.UnhealthyAt.Add(f.Policy.Hold)):
		return wait(rulePolicyHold, "the policy holds each machine for %s before it is replaced", view.Duration(f.Policy.Hold))
	default:
		return nil
	}
}

// checkPauseRequests returns a wait if pause requests of the policy or of RepairLimits ask to start nothing.
func (f *Facts) checkPauseRequests() *Decision {
	switch {
	case len(f.Fleet.Limits.Paused) > 0:
		return waitForHuman("remove the pause requests", ruleFleetPaused, "RepairLimits default has pause requests: %s", strings.Join(f.Fleet.Limits.Paused, "; "))
	case len(f.Policy.Paused) > 0:
		return waitForHuman("remove the pause requests", rulePauseRequests, "RepairPolicy %s has pause requests: %s", f.Policy.Name, strings.Join(f.Policy.Paused, "; "))
	default:
		return nil
	}
}

const nextRelease = "release the machine when you no longer need it"

func (u *UnhealthyMachine) describeHold() string {
	return "an operator holds the machine" + formatUntil(u.HoldUntil) + formatReason(u.HoldReason)
}

func formatUntil(t time.Time) string {
	return formatIf(!t.IsZero(), " until %s", utc(t))
}

func formatReason(why string) string { return formatIf(why != "", ": %s", why) }

// checkAttempts returns the decision about a machine with an escalation step in progress, or whose
// earlier attempts do not permit another one now. It returns nil for other machines.
func (s *State) checkAttempts(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	cooldown := f.Policy.Limits.Cooldown
	switch {
	case u.EscalationStep != "" && f.atRiskWithout(m):
		r := f.riskOfStopping(m)
		return &Decision{Verdict: Freeze, Rule: "escalation", Reason: "escalation step " + u.EscalationStep + " is undone: " + r.why, Next: r.next}
	case u.EscalationStep != "":
		return &Decision{Verdict: Escalate, Rule: "escalation", Reason: "escalation step " + u.EscalationStep + " is in progress"}
	case u.WrongMachineDeleted:
		return &Decision{Verdict: CannotRemediate, Rule: "surprise", Reason: f.Owner.Name + " deleted a healthy machine instead of this one, which had the delete annotation; it would do so again", Next: "find out how " + f.Owner.Name + " chooses the machine that it deletes (rollout strategy OnDelete, several MachineSets), and replace this machine by hand; or hold and release the machine to retry"}
	case u.Attempts >= f.Policy.Attempts:
		return &Decision{Verdict: CannotRemediate, Rule: ruleAttempts, Reason: view.Count(u.Attempts, "attempt") + " to replace it failed", Next: "find out why its replacements do not become ready, fix that, then hold and release the machine to reset the count of its attempts, or raise maxAttempts"}
	case s.chainLength(u) >= f.Policy.Attempts:
		return &Decision{Verdict: CannotRemediate, Rule: "chain", Reason: "it is the last of " + view.Count(s.chainLength(u), "consecutive replacement") + " that each failed", Next: "find out why the machines fail, fix that, then hold and release the machine to replace it once more, or raise maxAttempts"}
	case !u.LastAttempt.IsZero() && now.Before(u.LastAttempt.Add(cooldown)):
		return wait(ruleCooldown, "the last attempt was at %s; the next may start %s later", utc(u.LastAttempt), view.Duration(cooldown))
	case now.Before(s.ownerCooldown().Add(cooldown)):
		return wait(ruleCooldown, "the last attempt for %s was cancelled at %s; the next may start %s later", f.Owner.Name, utc(s.ownerCooldown()), view.Duration(cooldown))
	default:
		return nil
	}
}

// ownerCooldown returns when the last attempt of this owner that timed out ended, or zero.
func (s *State) ownerCooldown() time.Time {
	for _, e := range slices.Backward(s.History) {
		if e.Outcome == EndCancelled && e.Cause == TimedOut {
			return e.EndedAt
		}
	}
	return time.Time{}
}

// massFailureEnded returns when the last mass failure ended, or zero.
func (s *State) massFailureEnded(f *Facts) time.Time {
	return later(s.MassFailureEnded, f.Ledger.MassFailureEnded)
}

func (s *State) massFailureCooldownEnd(f *Facts) time.Time {
	return dueIf(!s.massFailureEnded(f).IsZero(), s.massFailureEnded(f).Add(f.Policy.Limits.MassFailure.Cooldown))
}

// checkLimits returns a wait if a limit of the policy, for all owners that it selects, or a limit
// of the whole fleet is reached. It returns nil otherwise.
func (s *State) checkLimits(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	l := f.Policy.Limits
	begun := len(within(slices.Concat(s.Starts, f.Ledger.Started), l.Window, now))
	// Reasons do not contain counts, because each change of a reason would be a new decision.
	switch {
	case f.inMassFailure():
		return waitForHuman(fmt.Sprintf("look for the common cause, for example in the network or the infrastructure; the wait ends %s after fewer are unhealthy (limits.massFailure.cooldown)", view.Duration(l.MassFailure.Cooldown)),
			rulePolicyMassFailure, "a mass failure: at least %s and %d %% of the selected machines are unhealthy at once, probably for a common cause", view.Count(l.MassFailure.Floor, "machine"), l.MassFailure.Percent)
	case now.Before(s.massFailureCooldownEnd(f)):
		return wait(rulePolicyCooldown, "a mass failure ended at %s; nothing starts for %s", utc(s.massFailureEnded(f)), view.Duration(l.MassFailure.Cooldown))
	case f.Ledger.Active+len(s.InProgress()) >= l.AtOnce:
		return waitForHuman(nextAtLimit("limits.atOnce"), ruleAtOnce, "%d or more remediations are in progress, the policy's limit", l.AtOnce)
	case begun >= l.PerWindow && !u.alreadyCounted():
		return waitForHuman("wait (`scutectl get machines` shows until when), or raise limits.perWindow", ruleWindow, "%d or more remediations started within %s, the policy's limit", l.PerWindow, view.Duration(l.Window))
	default:
		return s.checkFleetLimits(u, m, f, now)
	}
}

// escalate returns the decision to try an escalation step before a replacement, or nil if no step
// is left or the cluster cannot do without the machine for a while. It returns nil for a machine
// that never became a Node, because its bootstrap runs only once.
func (s *State) escalate(u *UnhealthyMachine, m *Machine, f *Facts, _ time.Time) *Decision {
	step := u.nextStep(f.Policy.Escalation)
	if step == nil || m.Node == "" || u.hasNotice() || u.Attempts > 0 || !f.riskOfStopping(m).none() {
		return nil
	}
	return &Decision{Verdict: Escalate, Rule: "escalation", Reason: fmt.Sprintf("escalation step %s is tried for %s before the machine is replaced", step.Name, view.Duration(step.Timeout))}
}

// allows reports whether the policy permits a method. A policy without methods permits all.
func (p Policy) allows(m v1alpha1.RepairMethod) bool { return len(p.Methods) == 0 || p.Methods[m] }
