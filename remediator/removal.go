package remediator

import "time"

// Transitions that end a wait in the deletion of a machine after its timeout in the policy.
//
//nolint:gochecknoglobals // a table
var (
	drainOverdue = timed("the drain of the Node has taken `removal.drainTimeout`", same, remediation.drainDeadline, "its deletion continues without the drain of its Node", func(r remediation) DrainSkipped {
		return DrainSkipped{Since: r.victim.Draining, After: r.facts.Policy.Removal.Drain.String()}
	})
	detachOverdue = timed("its volumes were not detached within `removal.volumeDetachTimeout`", same, remediation.detachDeadline, "its deletion continues without waiting for its volumes", func(r remediation) VolumeDetachSkipped {
		return VolumeDetachSkipped{Since: r.victim.Detaching, After: r.facts.Policy.Removal.Detach.String()}
	})
)

// drainDeadline returns when the deletion must stop waiting for the drain, or zero without a timeout. detachDeadline does the same for volumes.
func (r remediation) drainDeadline() time.Time {
	return dueIf(!r.SkipsDrain && !r.victim.SkipsDrain, r.waitTimeout(r.victim.Draining, r.facts.Policy.Removal.Drain))
}

func (r remediation) detachDeadline() time.Time {
	return dueIf(!r.SkipsDetach && !r.victim.SkipsDetach, r.waitTimeout(r.victim.Detaching, r.facts.Policy.Removal.Detach))
}

// waitTimeout returns when a wait with a timeout in the policy has lasted too long. It returns zero without a timeout. It also does so while an operator
// or the policy objects (abort, hold without end, skip-remediation, pause requests) or a suspension restricts writes, because somebody may need the
// workload, which ends with the machine.
func (r remediation) waitTimeout(since time.Time, limit time.Duration) time.Time {
	if u := r.unhealthy; u != nil && (u.Aborted || u.held(r.now) && u.HoldUntil.IsZero()) {
		return time.Time{}
	}
	free := r.by == nil || r.by.writes == writesAll
	due := r.countFrom(since).Add(limit)
	if u := r.unhealthy; u != nil && u.held(r.now) && u.HoldUntil.After(due) {
		due = u.HoldUntil
	}
	return dueIf(free && !r.victim.Skip && !r.facts.pauseRequested() && limit > 0 && !since.IsZero(), due)
}

// skipWaits returns the writes that make the deletion of the victim skip the waits whose timeouts have expired.
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
