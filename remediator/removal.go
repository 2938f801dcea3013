package remediator

import "time"

// What the deletion of a machine waits for, and the policy bounds.
//
//nolint:gochecknoglobals // a table
var (
	drainOverdue = timed("the drain of its Node has lasted `removal.drainTimeout`", same, remediation.drainedBy, "its deletion waits no longer for the drain of its Node", func(r remediation) DrainSkipped {
		return DrainSkipped{Since: r.victim.Draining, After: r.facts.Policy.Removal.Drain.String()}
	})
	detachOverdue = timed("its volumes have not been detached for `removal.volumeDetachTimeout`", same, remediation.detachedBy, "its deletion waits no longer for its volumes", func(r remediation) VolumeDetachSkipped {
		return VolumeDetachSkipped{Since: r.victim.Detaching, After: r.facts.Policy.Removal.Detach.String()}
	})
)

// drainedBy, and detachedBy, are when the deletion is to wait no longer for that; zero without bound.
func (r remediation) drainedBy() time.Time {
	return dueIf(!r.SkipsDrain && !r.victim.SkipsDrain, r.outwaits(r.victim.Draining, r.facts.Policy.Removal.Drain))
}

func (r remediation) detachedBy() time.Time {
	return dueIf(!r.SkipsDetach && !r.victim.SkipsDetach, r.outwaits(r.victim.Detaching, r.facts.Policy.Removal.Detach))
}

// outwaits is when a wait that the policy bounds has lasted too long, zero while somebody wants the machine, or all machines, left
// alone: what it runs ends with it, and somebody may be looking after that. A limit of 0 is none.
func (r remediation) outwaits(since time.Time, limit time.Duration) time.Time {
	if u := r.unhealthy; u != nil && (u.Aborted || u.held(r.now) && u.HoldUntil.IsZero()) {
		return time.Time{}
	}
	free := r.by == nil || r.by.writes == writesAll
	due := r.counts(since).Add(limit)
	if u := r.unhealthy; u != nil && u.held(r.now) && u.HoldUntil.After(due) {
		due = u.HoldUntil
	}
	return dueIf(free && !r.victim.Skip && !r.facts.pauseRequested() && limit > 0 && !since.IsZero(), due)
}

// hasten has the deletion of the victim wait no longer for what it was said of.
func (r remediation) hasten() []Action {
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
