package remediator

import (
	"slices"
	"time"
)

// spareAfter is how long a cancellation without a new machine waits before it removes the delete
// annotation of the unhealthy machine. If the owner has already started to create a machine, that
// machine must appear first. Otherwise the owner could delete an older, healthy machine instead.
// The time is longer than the slowest call of an owner, which is to an etcd behind a dead kubelet.
// Waiting does no harm, because all machines exist. After the removal, the owner gets the same time
// to observe it.
const spareAfter = 30 * time.Second

var (
	stepCancelling = step{
		name:    cancelling,
		meaning: "The requests are undone. The machine keeps its delete annotation.",
		writes:  cancellingActions,
		exits:   []transition{ownerGone, victimGone, victimDeletionStarted, another, lateReady, raised, restored, spared},
	}

	lateReady = transition{
		when: "the replacement has timed out, and the new machine is ready now; the old machine is still unhealthy, no rule prevents its replacement, the owner is not asked to remediate a new machine, and neither unhealthy components of another machine nor a surplus new machine keep the owner from deleting it", event: ReplacementReady{}, to: removing,
		events: func(r remediation) []Event {
			if m := r.lateReplacement(); m != nil && r.unopposed(r.now) {
				return []Event{ReplacementReady{Replacement: m.subject()}}
			}
			return nil
		},
		deadline: deadline{due: func(r remediation) time.Time {
			ends := r.unhealthy.heldUntil(r.facts.Policy)
			return dueIf(ends.After(r.now) && r.lateReplacement() != nil && !r.unopposed(r.now) && r.unopposed(ends), ends)
		}, then: "it continues, because the new machine is ready"},
	}
	spared = transition{
		when: "replicas, rollout trigger and conditions are restored, the owner has observed it, and each surplus new machine has a delete annotation", event: VictimSpared{}, to: sparing,
		events: func(r remediation) []Event {
			now, due := r.mayBeSpared()
			return eventIf(now || r.reached(due), VictimSpared{})
		},
		deadline: deadline{due: func(r remediation) time.Time {
			_, due := r.mayBeSpared()
			return due
		}, then: "the delete annotation of the machine is removed"},
	}
)

// cancellingActions returns the writes that undo the request. They begin with the delete
// annotations of the new machines and end with that of the unhealthy machine.
func cancellingActions(r remediation) []Action {
	var actions []Action
	for _, m := range r.newMachines {
		switch {
		case m.DeleteAnnotation == "" && r.mustDeleteNew():
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject(), Value: DeleteValue})
		case m.DeleteAnnotation == DeleteValue && r.in(sparing) && !r.mustDeleteNew() && r.method.undone(r):
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject()}) // users want the machine now
		}
	}
	actions = slices.Concat(actions, r.removeRelaxed(), r.method.undo(r), r.removeSurplus(), r.clearStaleRelaxed())
	if r.in(sparing) && r.victim != nil && r.victim.DeleteAnnotation == DeleteValue && !r.isOldSurplus() {
		actions = append(actions, r.set(SetDelete, ""))
	}
	return append(actions, r.touch(!r.in(sparing) || len(r.newMachines) > 0 && r.tooMany(), "-cancel")...)
}

// isOldSurplus reports whether the victim is a surplus machine of an earlier remediation, which has
// set the victim's delete annotation. Such an annotation must stay, because otherwise the owner
// would delete an older, healthy machine. A hand-over neither sets nor removes the annotation.
func (r remediation) isOldSurplus() bool {
	return r.Request.Method == OwnerRemediation && r.tooMany()
}

// lateReplacement returns a new machine that became ready after the timeout, and with which the
// remediation may continue, or nil. Continuing is better than cancelling, because while components
// of the unhealthy machine are broken, the owner can delete only the unhealthy machine, and not the
// new one. It returns nil while the owner is asked to remediate a new machine.
func (r remediation) lateReplacement() *Machine {
	if !r.resumable() || slices.ContainsFunc(r.newMachines, handedOver) {
		return nil
	}
	return pick(r.newMachines, func(m *Machine) bool { return !r.isSurplus(m) && r.facts.ready(m) })
}

// resumable reports whether a cancelled replacement may continue with a new machine that is ready.
// A replacement continues at most as often as the policy permits attempts.
func (r remediation) resumable() bool {
	switch {
	case r.Cause != TimedOut || r.Request.Method == OwnerRemediation || !r.unhealthy.isUnhealthy() || !r.tooMany() || r.Resumed >= r.facts.Policy.Attempts:
		return false
	case !r.facts.isControlPlane():
		return !r.Ready
	case r.stuck() || r.outranked():
		return false // its owner would not delete the machine either
	default: // a new machine that was ready before can be deleted, unless components of the unhealthy machine are broken
		return !r.Ready || r.in(sparing) && r.facts.isBroken(r.victim)
	}
}

// outranked reports whether components of the victim are broken and another client has set the
// delete annotation on another machine. The owner may try to delete that machine first, and fail
// because of the broken components.
func (r remediation) outranked() bool {
	return r.victim != nil && r.facts.isBroken(r.victim) &&
		slices.ContainsFunc(r.facts.Machines, func(m Machine) bool { return r.annotatedByOthers(&m) })
}

// unopposed reports whether, at the given time, no rule would prevent a remediation like the one
// that is being cancelled, and the machine may be deleted.
func (r remediation) unopposed(at time.Time) bool {
	s, u, m, f := r.state, r.unhealthy, r.victim, r.facts
	if !r.isCancelling() || r.by != nil || u.UID == "" || m == nil || len(f.Policy.blockingHooks(m)) > 0 || firstOf(u, m, f, at, checkForeignState, s.checkConsent) != nil {
		return false
	}
	return !f.isControlPlane() || checkBlind(f) == nil && f.riskOfRemoval(m).none() && !caseOf(m, f, nil).leadsUnreachable()
}

// mayBeSpared reports whether the delete annotation of the unhealthy machine may be removed now,
// and otherwise when (due), or zero for not yet. While there is a surplus machine, some machine
// must have the annotation, because otherwise the owner would delete the oldest machine, which is
// healthy.
func (r remediation) mayBeSpared() (now bool, due time.Time) {
	for _, m := range r.newMachines {
		if m.DeleteAnnotation == "" && r.mustDeleteNew() {
			return false, time.Time{}
		}
	}
	if r.victim == nil || !r.method.undone(r) || r.committed() && r.tooMany() && r.victim.DeleteAnnotation != "" {
		return false, time.Time{}
	}
	came := len(r.newMachines) > 0 || r.Replacement.UID != ""
	return came && !r.replacesOther(), r.Since.Add(spareAfter)
}

// replacesOther reports whether, in a RolloutSurge, the new machine took the place of a machine
// that another client has deleted. The owner may still be creating the requested machine.
func (r remediation) replacesOther() bool {
	return r.Request.Method == RolloutSurge && !r.tooMany() && slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return !m.Deleting })
}

var (
	stepSparing = step{
		name:    sparing,
		meaning: "No additional machine is requested any more. The delete annotation of the machine is removed, and new machines are deleted.",
		writes:  cancellingActions,
		exits:   []transition{ownerGone, victimGone, victimDeletionStarted, another, lateReady, raised, restored, cancelled, abandoned},
	}

	cancelled = transition{
		when: "the new machines are gone, and everything that scute wrote is removed", event: Cancelled{}, to: ended,
		events: func(r remediation) []Event {
			remains := len(r.newMachines) > 0 && r.mustDeleteNew() || len(r.deleting) > 0 || len(cancellingActions(r)) > 0
			return eventIf(!remains, Cancelled{Cause: r.Cause})
		},
	}
	abandoned = transition{
		when: "a control plane has not deleted the new machines within `timeouts.removal`; the owner is no longer asked to remediate them, and they keep their delete annotations", event: Cancelled{}, to: ended,
		events: func(r remediation) []Event {
			return eventIf(r.reached(r.abandonTime()) && len(r.removeSurplus()) == 0, Cancelled{Cause: r.Cause})
		},
		deadline: deadline{due: remediation.abandonTime, then: "it ends as Cancelled, and scute decides again about all machines"},
	}
)

// abandonTime returns the time at which the remediation ends even though a control plane has not
// deleted the new machines. It returns zero while something must be undone or a machine is being
// deleted.
func (r remediation) abandonTime() time.Time {
	marked := r.victim.DeleteAnnotation == DeleteValue && !r.isOldSurplus()
	keeps := !r.tooMany() && len(r.removeSurplus()) > 0
	return dueIf(len(r.deleting) == 0 && r.method.undone(r) && !marked && !keeps && len(r.removeRelaxed()) == 0 && len(r.clearStaleRelaxed()) == 0, r.deletionDeadline())
}
