package remediator

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/view"
)

var (
	stepRemoving = step{
		name:    removing,
		meaning: "The new machine is ready. The owner must delete the unhealthy machine.",
		writes:  requestingActions,
		exits:   slices.Concat(victimTransitions, []transition{replacementObserved, another}, replicaTransitions, cancelTransitions, []transition{blocked, notRemoved, consumed}),
	}

	blocked = expires("the owner cannot delete the machine for `timeouts.scaleUp`, because components of another machine are unhealthy", TimedOut, func(r remediation) time.Time {
		return dueIf(r.stuck(), r.extendedDeadline(r.facts.Policy.Timeouts.ScaleUp))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, view.Duration(r.facts.Policy.Timeouts.ScaleUp), r.obstacle())
	})
	notRemoved = expires("the owner does not delete the machine within `timeouts.removal`", TimedOut, func(r remediation) time.Time {
		return dueIf(r.facts.Policy.Timeouts.Removal > 0, r.extendedDeadline(r.facts.Policy.Timeouts.Removal))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, view.Duration(r.facts.Policy.Timeouts.Removal), r.obstacle())
	})
)

var (
	stepDeleting = step{
		name:    deleting,
		meaning: "The owner, or another client, is deleting the machine.",
		writes:  deletingActions,
		exits:   []transition{ownerGone, victimGone, another, replacementReady.withTarget(same), raised, restored, drainOverdue, detachOverdue, hanging},
	}

	hanging = timed("a worker is being deleted for longer than `timeouts.removal`, its replacement is ready, and the replicas are restored", ended, func(r remediation) time.Time {
		replaced := r.Ready && r.facts.machine(r.Replacement) != nil && r.method.undone(r) && !r.tooMany()
		return dueIf(!r.facts.isControlPlane() && replaced, r.removalDeadline(r.victim))
	}, "it ends as Succeeded, although the machine still exists", func(r remediation) Succeeded {
		return Succeeded{Note: fmt.Sprintf("it still exists %s after its deletion started: check its drain, its volumes and its infrastructure", view.Duration(r.facts.Policy.Timeouts.Removal))}
	})
)

func deletingActions(r remediation) []Action {
	actions := append(r.method.retract(r), r.skipWaits()...)
	if r.facts.isControlPlane() && r.Request.Method != OwnerRemediation {
		return slices.Concat(r.cancelHandOvers(), r.removeRelaxed(), actions)
	}
	return append(actions, r.removeUnneededAnnotations()...)
}

// removalDeadline returns the time by which a machine that is being deleted must be gone, or zero
// if it is not being deleted or there is no timeout.
func (r remediation) removalDeadline(m *Machine) time.Time {
	limit := r.facts.Policy.Timeouts.Removal
	if m == nil || !m.Deleting || limit <= 0 {
		return time.Time{}
	}
	return r.countFrom(m.DeletingSince).Add(limit)
}

// countFrom returns the time from which a timeout counts: since, which an object reports, or the
// start of the step if since is in the future. Such a time was written before a clock was set back.
func (r remediation) countFrom(since time.Time) time.Time {
	if isFuture(since, r.now) {
		return r.Since
	}
	return since
}

// Transitions that end a wait in the deletion of a machine after its timeout in the policy.
var (
	drainOverdue = timed("the drain of the Node has taken `removal.drainTimeout`", same, func(r remediation) time.Time {
		return r.waitTimeout(r.SkipsDrain || r.victim.SkipsDrain, r.victim.Draining, r.facts.Policy.Removal.Drain)
	}, "its deletion continues without the drain of its Node", func(r remediation) DrainSkipped {
		return DrainSkipped{Since: r.victim.Draining, After: r.facts.Policy.Removal.Drain.String()}
	})
	detachOverdue = timed("its volumes were not detached within `removal.volumeDetachTimeout`", same, func(r remediation) time.Time {
		return r.waitTimeout(r.SkipsDetach || r.victim.SkipsDetach, r.victim.Detaching, r.facts.Policy.Removal.Detach)
	}, "its deletion continues without waiting for its volumes", func(r remediation) VolumeDetachSkipped {
		return VolumeDetachSkipped{Since: r.victim.Detaching, After: r.facts.Policy.Removal.Detach.String()}
	})
)

// waitTimeout returns the time at which a wait in the deletion of the victim has lasted for its
// limit in the policy. It returns zero if there is no limit, or the wait is skipped already. It
// also returns zero while an operator or the policy (abort, hold without end, skip-remediation,
// pause requests) or a suspension restricts writes, because skipping the wait stops workload that
// users may still need.
func (r remediation) waitTimeout(skipped bool, since time.Time, limit time.Duration) time.Time {
	free := !skipped && !r.victim.Skip && !r.unhealthy.Aborted && r.facts.checkPauseRequests() == nil && (r.by == nil || r.by.writes == writesAll)
	due := r.countFrom(since).Add(limit)
	if u := r.unhealthy; u.held(r.now) {
		free, due = free && !u.HoldUntil.IsZero(), later(due, u.HoldUntil)
	}
	return dueIf(free && limit > 0 && !since.IsZero(), due)
}

func (r remediation) skipWaits() []Action {
	var actions []Action
	if m := r.victim; m != nil && m.Deleting {
		if r.SkipsDrain && !m.SkipsDrain {
			actions = append(actions, r.set(SkipDrain, ""))
		}
		if r.SkipsDetach && !m.SkipsDetach {
			actions = append(actions, r.set(SkipDetach, ""))
		}
	}
	return actions
}
