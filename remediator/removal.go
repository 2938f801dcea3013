package remediator

import "time"

// What the deletion of a machine waits for, and the policy bounds.
//
//nolint:gochecknoglobals // a table
var (
	drainOverdue = transition{
		when: "the drain of its Node has lasted `removal.drainTimeout`", event: DrainSkipped{}, to: same,
		facts: func(r remediation) []Event {
			limit := r.facts.Policy.Removal.Drain
			if r.SkipsDrain || r.victim.SkipsDrain || !r.outwaited(r.victim.Draining, limit) {
				return nil
			}
			return []Event{DrainSkipped{Since: r.victim.Draining, After: limit.String()}}
		},
	}
	detachOverdue = transition{
		when: "its volumes have not been detached for `removal.volumeDetachTimeout`", event: VolumeDetachSkipped{}, to: same,
		facts: func(r remediation) []Event {
			limit := r.facts.Policy.Removal.Detach
			if r.SkipsDetach || r.victim.SkipsDetach || !r.outwaited(r.victim.Detaching, limit) {
				return nil
			}
			return []Event{VolumeDetachSkipped{Since: r.victim.Detaching, After: limit.String()}}
		},
	}
)

// outwaited says that a wait that the policy bounds has lasted too long, and that nobody wants the machine, or all machines, left
// alone: what it runs ends with it, and somebody may be looking after that. A limit of 0 is none.
func (r remediation) outwaited(since time.Time, limit time.Duration) bool {
	free := r.by == nil || r.by.writes == writesAll
	alone := r.victim.Skip || r.unhealthy != nil && (r.unhealthy.Aborted || r.unhealthy.held(r.now)) || r.facts.pauseRequested()
	return free && !alone && limit > 0 && !since.IsZero() && r.now.Sub(since) >= limit
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
