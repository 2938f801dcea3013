package remediator

import (
	"slices"
	"time"
)

var (
	stepSettling = step{
		name:    settling,
		meaning: "The unhealthy machine is gone. Its replacement must become ready, and everything that scute wrote must be removed.",
		writes:  settlingActions,
		exits:   []transition{ownerGone, another, replacementReady.withTarget(same), raised, restored, succeeded, notSettled},
	}

	succeeded = transition{
		when: "the replacement, or all machines, are ready, and everything that scute wrote is removed", event: Succeeded{}, to: ended,
		events: func(r remediation) []Event {
			note, ok := r.complete()
			return eventIf(ok && r.isClean(), Succeeded{Note: note, Gone: r.Replacement.UID != "" && r.facts.machine(r.Replacement) == nil})
		},
	}
	notSettled = ends("everything that scute wrote is removed, and the replacement is not ready within `timeouts.ready` and `timeouts.scaleUp` together; within `timeouts.scaleUp` if a machine that never joined keeps the owner from creating one", TimedOut, func(r remediation) string {
		return formatIf(r.reached(r.settleDeadline()), "the machine is gone, and its replacement is not ready in time")
	}).by(remediation.settleDeadline, "it ends as Cancelled")
)

// settlingActions returns the writes that remove, after the unhealthy machine is gone, everything
// that scute wrote for the remediation.
func settlingActions(r remediation) []Action {
	actions := r.method.retract(r)
	for _, m := range r.newMachines {
		if r.method.undone(r) && m.DeleteAnnotation == DeleteValue && r.unneeded(m) {
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject()})
		}
	}
	return slices.Concat(actions, r.removeUnneededAnnotations(), r.removeSurplus(), r.clearStaleRelaxed(), r.removeRelaxed(), r.touch(false, ""))
}

// unneeded reports whether the delete annotation of a new machine may be removed after the
// unhealthy machine is gone. A new machine that is neither the replacement nor surplus was created
// because users wanted more machines, and keeps the annotation if they now want fewer.
func (r remediation) unneeded(m *Machine) bool {
	switch {
	case r.isSurplus(m):
		return !r.tooMany()
	case m.UID == r.Replacement.UID:
		return true
	default:
		return r.facts.isLeftover(m)
	}
}

// settleDeadline returns the time by which the replacement must be ready after the unhealthy
// machine is gone. It returns zero while something must still be written or deleted.
func (r remediation) settleDeadline() time.Time {
	limit := r.facts.Policy.Timeouts.Ready + r.facts.Policy.Timeouts.ScaleUp
	if slices.ContainsFunc(r.stranded, r.facts.stallsOwner) {
		limit = r.facts.Policy.Timeouts.ScaleUp
	}
	return dueIf(r.facts.Policy.Unreadable == "" && r.isClean(), r.deadlineAfter(limit))
}

// isClean reports whether nothing remains to be written after the unhealthy machine is gone, and
// the remediation waits for no deletion.
func (r remediation) isClean() bool {
	marked := slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return m.DeleteAnnotation == DeleteValue })
	return len(r.deleting) == 0 && len(settlingActions(r)) == 0 && (!marked || r.method.undone(r))
}
