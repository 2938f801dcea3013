package remediator

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/internal/timespan"
)

//nolint:gochecknoglobals // a table
var (
	stepRemoving = step{
		name:    Removing,
		meaning: "The new machine is ready. The owner must delete the unhealthy machine.",
		awaits:  remediation.awaitsRemoval,
		writes:  requestingActions,
		exits:   slices.Concat(victimTransitions, []transition{replacementObserved, another}, replicaTransitions, cancelTransitions, []transition{blocked, notRemoved, consumed}),
	}

	blocked = expires("the owner cannot delete the machine for `timeouts.scaleUp`, as components of another one are not well", TimedOut, func(r remediation) time.Time {
		return dueIf(r.stuck(), r.extendedDeadline(r.facts.Policy.Timeouts.ScaleUp))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, timespan.Text(r.facts.Policy.Timeouts.ScaleUp), r.obstacle())
	})
	notRemoved = expires("the owner does not delete the machine within `timeouts.removal`", TimedOut, func(r remediation) time.Time {
		return dueIf(r.facts.Policy.Timeouts.Removal > 0, r.extendedDeadline(r.facts.Policy.Timeouts.Removal))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, timespan.Text(r.facts.Policy.Timeouts.Removal), r.obstacle())
	})
)

func (r remediation) awaitsRemoval() string {
	return fmt.Sprintf("%s deletes %s", r.facts.Owner.Name, r.Victim.Name)
}

//nolint:gochecknoglobals // a table
var (
	stepDeleting = step{
		name:    Deleting,
		meaning: "The owner, or somebody else, is deleting the machine.",
		awaits:  remediation.awaitsDeletion,
		writes:  deletingActions,
		exits:   []transition{ownerGone, victimGone, another, replacementReady.withTarget(same), raised, restored, drainOverdue, detachOverdue, hanging},
	}

	hanging = timed("a worker is being deleted for longer than `timeouts.removal`, its replacement is ready, and replicas are back", ended, remediation.hangTime, "it ends as Succeeded, though the machine is still there", func(r remediation) Succeeded {
		return Succeeded{Note: fmt.Sprintf("it is still there after %s of deletion: see its drain, its volumes, its infrastructure", timespan.Text(r.facts.Policy.Timeouts.Removal))}
	})
)

func (r remediation) awaitsDeletion() string { return r.Victim.Name + " goes, and its place is taken" }

// deletingActions returns the writes while the machine is being deleted.
func deletingActions(r remediation) []Action {
	actions := append(r.method.retract(r), r.skipWaits()...)
	if r.facts.isControlPlane() && r.Request.Method != OwnerRemediation {
		return slices.Concat(r.cancelHandOvers(), r.removeRelaxed(), actions)
	}
	return append(actions, r.removeUnneededAnnotations()...)
}

// hangTime returns when the remediation of a worker ends although the worker is still being deleted. It returns zero if the worker is not replaced.
func (r remediation) hangTime() time.Time {
	replaced := r.Ready && r.facts.machine(r.Replacement) != nil && r.method.undone(r) && !r.tooMany()
	return dueIf(!r.facts.isControlPlane() && replaced, r.removalDeadline(r.victim))
}

// removalDeadline returns when a machine that is being deleted must be gone, or zero without a timeout.
func (r remediation) removalDeadline(m *Machine) time.Time {
	limit := r.facts.Policy.Timeouts.Removal
	if m == nil || !m.Deleting || limit <= 0 {
		return time.Time{}
	}
	return r.countFrom(m.DeletingSince).Add(limit)
}

// countFrom returns the time from which a timeout counts: since, which an object reports, or the start of the step if since is in the future. Such a
// time was written before a clock was set back.
func (r remediation) countFrom(since time.Time) time.Time {
	if isFuture(since, r.now) {
		return r.Since
	}
	return since
}
