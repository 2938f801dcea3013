package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scute.dev/view"
)

// Transitions that most steps have. Every other transition is in the file of the first step that has it.
var (
	ownerGone = ends("the owner is gone, and no replicas are raised in the topology of its Cluster", OwnerGone, func(r remediation) string {
		return formatIf(!r.facts.Owner.Found && !r.orphaned(), "the owner is gone%s", r.raisedHint())
	})
	ownerDeleted = ends("the owner or its Cluster is being deleted, and no replicas are raised in the topology", OwnerGone, func(r remediation) string {
		return formatIf((r.facts.Owner.Deleting || r.facts.Cluster.Deleting) && !r.orphaned(), "the owner is being deleted")
	})
	victimGone            = observes("the machine is gone", VictimGone{}, settling, func(r remediation) bool { return r.victim == nil })
	victimDeletionStarted = observes("the machine is being deleted", VictimDeleting{}, deleting, func(r remediation) bool {
		return r.victim != nil && r.victim.Deleting
	})
	replacementObserved = transition{
		when: "a new machine exists, and no other one was observed before", event: ReplacementObserved{}, to: replacing,
		events: remediation.newMachineEvents,
	}
	another = transition{
		when: "a new machine exists", event: ReplacementObserved{Extra: true}, to: same,
		events: remediation.newMachineEvents,
	}
	replacementReady = transition{
		when: "the new machine has joined, and is ready", event: ReplacementReady{}, to: removing,
		events: func(r remediation) []Event {
			m := r.facts.machine(r.Replacement)
			return eventIf(!r.Ready && m != nil && r.facts.ready(m), ReplacementReady{Replacement: r.Replacement})
		},
	}
	raised = observes("the owner has the requested replicas", ScaleRaised{}, same, func(r remediation) bool {
		return r.scales() && r.Scale == scaleUnobserved && r.replicas == r.Request.To
	})
	restored = observes("the owner has its original replicas again", ScaleRestored{}, same, func(r remediation) bool {
		return r.scales() && r.Scale == scaleRaised && r.replicas == r.Request.From && r.Frozen != freezeForeign
	})
	aborted = cancels("an operator aborts it", Aborted, func(r remediation) string {
		return formatIf(r.unhealthy.Aborted, "an operator aborted it")
	})
	skipped = cancels("the machine has the annotation skip-remediation", Aborted, func(r remediation) string {
		return formatIf(r.victim != nil && r.victim.Skip, "the machine has the annotation cluster.x-k8s.io/skip-remediation now")
	})
	deselected = cancels("no RepairPolicy selects the machine", Deselected, func(r remediation) string {
		return formatIf(r.facts.Policy.Name == "", "no RepairPolicy selects the machine any more")
	})
	recovered = cancels("the machine is healthy, no other machine is deleted instead when the request is undone, and no freeze keeps scute from observing or writing", Recovered, func(r remediation) string {
		healthy := !r.unhealthy.marked()
		free := slices.Contains([]string{"", freezeForeign, freezeRisk, freezeRequest, freezeHold, freezeRefused, freezeDenied}, r.Frozen)
		return formatIf(healthy && free && !r.committed() && !r.facts.withinGracePeriod(), "the machine is healthy again")
	})
	superseded = expires("a rollout or a pending upgrade of the owner lasts longer than `timeouts.scaleUp` and `timeouts.ready` together", Superseded, func(r remediation) time.Time {
		return dueIf(r.ownerRollingOut(), r.deadlineAfter(r.facts.Policy.Timeouts.ScaleUp+r.facts.Policy.Timeouts.Ready))
	}, func(r remediation) string {
		limit := r.facts.Policy.Timeouts.ScaleUp + r.facts.Policy.Timeouts.Ready
		return fmt.Sprintf("a rollout or an upgrade started meanwhile, and %s created no replacement that was ready within %s", r.facts.Owner.Name, view.Duration(limit))
	})
	reverted = expires("another client has restored the replicas for half a minute, or has set others for `timeouts.scaleUp`", Reverted, func(r remediation) time.Time {
		limit := r.facts.Policy.Timeouts.ScaleUp
		if r.replicas == r.Request.From {
			limit = spareAfter
		}
		return dueIf(r.Frozen == freezeForeign, r.FrozenAt.Add(limit))
	}, func(r remediation) string {
		return fmt.Sprintf("another client set the replicas to %d, and scute requested %d", r.replicas+r.facts.excludedReplicas, r.Request.To+r.facts.excludedReplicas)
	})
)

func dueIf(so bool, at time.Time) time.Time {
	if !so {
		return time.Time{}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func formatIf(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// raisedHint returns a hint for users if the owner is gone while its replicas were raised and its
// Cluster is paused or gone. If the Cluster was moved without a Move, the replicas are still raised
// in the target management cluster, where no object records the original value.
func (r remediation) raisedHint() string {
	return formatIf(r.scales() && r.Scale != scaleRestored && (r.facts.Cluster.Paused || !r.facts.Cluster.Found),
		"; scute requested %d replicas instead of %d: if the Cluster was moved, restore them there by hand", r.Request.To, r.Request.From)
}

// extendedDeadline returns the time at which a step has lasted for limit, or zero if no action is
// possible. During a rollout it also returns zero for a surge, because the rollout should replace
// the machine with the delete annotation first. The transition superseded ends that wait.
func (r remediation) extendedDeadline(limit time.Duration) time.Time {
	return dueIf(!r.ownerRollingOut() || r.Request.Method == OwnerRemediation, r.deadlineAfter(limit))
}

// deadlineAfter returns the time at which a step has lasted for limit. It returns zero while no
// action is possible, because that time is not part of the duration.
func (r remediation) deadlineAfter(limit time.Duration) time.Time {
	return dueIf(r.Frozen == "" && !r.facts.withinGracePeriod(), r.Since.Add(limit))
}

// successor returns the new machine that should become the replacement if there is none or it is
// gone, or nil. It prefers a machine that is not surplus over a surplus machine without a delete
// annotation.
func (r remediation) successor() *Machine {
	other := func(m *Machine) bool { return m.UID != r.Replacement.UID }
	return cmp.Or(
		pick(r.newMachines, func(m *Machine) bool { return other(m) && !r.isSurplus(m) }),
		pick(r.newMachines, func(m *Machine) bool { return other(m) && m.DeleteAnnotation == "" && !r.isCancelling() }),
	)
}

// newMachineEvents returns the events for new machines that the log does not have. If there is no
// replacement, the first new machine becomes the replacement. If the replicas were raised, the
// other new machines are recorded as surplus, unless a rollout creates them or users want them.
func (r remediation) newMachineEvents() []Event {
	var events []Event
	replacement := r.facts.machine(r.Replacement)
	if r.Replacement.UID == "" || replacement == nil || replacement.Deleting {
		if replacement = r.successor(); replacement != nil {
			events = append(events, ReplacementObserved{Replacement: replacement.subject()})
		}
	}
	if replacement == nil || !r.scales() || r.ownerRollingOut() || r.isCancelling() || r.in(settling) && !r.tooMany() {
		return events
	}
	for _, m := range r.newMachines {
		if m.UID != replacement.UID && !r.isSurplus(m) {
			events = append(events, ReplacementObserved{Replacement: m.subject(), Extra: true})
		}
	}
	return events
}
