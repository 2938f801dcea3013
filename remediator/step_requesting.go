package remediator

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/view"
)

var (
	stepRequesting = step{
		name:    requesting,
		meaning: "The owner is asked for a replacement. No new machine was observed yet.",
		writes:  requestingActions,
		exits:   slices.Concat(victimTransitions, []transition{replacementObserved, another}, replicaTransitions, cancelTransitions, []transition{relaxed, worsenedTimeout, superseded, held, becameUnsafe, noReplacement}),
	}

	relaxed = transition{
		when: "components of the machine have become unhealthy, so the owner creates no other machine, and its preflight checks may be relaxed", event: SurgeRelaxed{}, to: same,
		events: remediation.relaxEvents,
	}
	worsenedTimeout = expires("components of the machine have been unhealthy for a minute, so the owner creates no other machine; its preflight checks may not be relaxed, and the owner may remediate the machine itself", Worsened, remediation.worsenedDeadline, func(r remediation) string {
		return fmt.Sprintf("%s since %s was asked, so it creates no machine now", caseOf(r.victim, r.facts, r.stranded).describeBroken(), r.facts.Owner.Name)
	})
	held         = cancels("`hold` has frozen it", Held, func(r remediation) string { return formatIf(r.Frozen == freezeHold, "%s", r.FrozenReason) })
	becameUnsafe = expires("`quorum-risk` has frozen it for `timeouts.scaleUp`", Unsafe, func(r remediation) time.Time {
		return dueIf(r.Frozen == freezeRisk, r.FrozenAt.Add(r.facts.Policy.Timeouts.ScaleUp))
	}, func(r remediation) string { return r.FrozenReason })
	noReplacement = expires("no new machine within `timeouts.scaleUp`", TimedOut, func(r remediation) time.Time {
		return r.extendedDeadline(r.facts.Policy.Timeouts.ScaleUp)
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not act within %s%s", r.facts.Owner.Name, view.Duration(r.facts.Policy.Timeouts.ScaleUp), r.obstacle())
	})
)

// relaxEvents returns SurgeRelaxed if components of the machine are broken now, although they were
// reported as healthy at the decision, and the owner's preflight checks may be relaxed. Otherwise
// the owner would create no machine until the components are healthy.
func (r remediation) relaxEvents() []Event {
	if !r.maySwitchMethod() || r.Request.Relaxed {
		return nil
	}
	if c := caseOf(r.victim, r.facts, r.stranded); c.answers && len(c.broken) > 0 && c.mayRelax() {
		return []Event{SurgeRelaxed{Reason: c.describeBroken() + " since " + r.facts.Owner.Name + " was asked"}}
	}
	return nil
}

// worsenedDeadline returns when to cancel a requested surge because the machine got worse, or zero.
// While components of the machine are broken, its owner creates no additional machine, but would
// remediate the broken machine. The deadline is a minute after the components broke, because they
// may recover.
func (r remediation) worsenedDeadline() time.Time {
	if !r.maySwitchMethod() || r.Request.Relaxed || Blind(r.facts) {
		return time.Time{} // with relaxed preflight checks the owner may still create a machine; a blind observation decides nothing
	}
	c := caseOf(r.victim, r.facts, r.stranded)
	if len(c.broken) == 0 {
		return time.Time{}
	}
	d := c.relaxed()
	if !c.answers {
		d = c.deleteFirst("c", "its etcd member "+c.describeSilent())
	}
	return dueIf(d.Verdict == OwnerRemediation, r.countFrom(r.victim.brokenSince()).Add(time.Minute))
}

// maySwitchMethod reports whether a control plane that was asked for a new machine may be asked to
// use another method: no new machine exists, nothing freezes the remediation, and no rollout
// creates a machine.
func (r remediation) maySwitchMethod() bool {
	return r.facts.isControlPlane() && r.Request.Method != OwnerRemediation && (r.Frozen == "" || r.Frozen == freezeRefused) && !r.facts.withinGracePeriod() && !r.ownerRollingOut() && len(r.newMachines) == 0
}

// nodeSilent reports whether the machine's Node has stopped reporting. It returns false if the
// cluster cannot be reached.
func (m *Machine) nodeSilent() bool {
	ready := m.Conditions[clusterv1.MachineNodeReadyCondition]
	return m.Node != "" && ready.Status == object.Unknown && !nodeUnreadable(clusterv1.MachineNodeReadyCondition, ready.Reason)
}

// brokenSince returns the time since which components of the machine have been broken, or zero if
// none is.
func (m *Machine) brokenSince() time.Time {
	var first time.Time
	earlier := func(seen Condition) {
		if seen.Status != "" && seen.Status != object.True && (first.IsZero() || seen.Since.Before(first)) {
			first = seen.Since
		}
	}
	if m.nodeSilent() {
		earlier(m.Conditions[clusterv1.MachineNodeReadyCondition])
	}
	for _, c := range components {
		earlier(m.Conditions[c.condition])
	}
	return first
}
