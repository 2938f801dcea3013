package remediator

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/view"
)

var (
	stepReplacing = step{
		name:    replacing,
		meaning: "A new machine exists and is not ready. The unhealthy machine still exists.",
		writes:  requestingActions,
		exits:   slices.Concat(victimTransitions, []transition{another, replacementReady}, replicaTransitions, cancelTransitions, []transition{superseded, notReady, consumed}),
	}

	notReady = expires("the new machine is not ready within `timeouts.ready`", TimedOut, func(r remediation) time.Time {
		return r.extendedDeadline(r.facts.Policy.Timeouts.Ready)
	}, func(r remediation) string {
		return fmt.Sprintf("replacement %s was not ready within %s", r.Replacement.Name, view.Duration(r.facts.Policy.Timeouts.Ready))
	})
	consumed = transition{
		when: "replicas are restored, and there are no more machines than requested: the new machine has replaced another one", event: SurgeConsumed{}, to: ended,
		events: func(r remediation) []Event {
			if !r.scales() || r.Scale != scaleRestored || len(r.deleting) > 0 || r.tooMany() || r.Replacement.UID == "" {
				return nil
			}
			if r.wrongMachineDeleted() {
				return []Event{SurgeConsumed{WrongMachine: true, Reason: r.facts.Owner.Name + " deleted a machine other than the one with the delete annotation; the new machine has replaced it"}}
			}
			return []Event{SurgeConsumed{Reason: "there are no more machines than requested now: the new machine has replaced another one"}}
		},
	}
)

// wrongMachineDeleted reports whether an owner of workers deleted a machine other than the victim,
// which has the delete annotation, and would do so again, because a scale-down removes machines of
// another MachineSet. If the lost machine was in the victim's MachineSet, another client deleted
// it, because within a MachineSet the machine with the annotation is deleted first.
func (r remediation) wrongMachineDeleted() bool {
	f := r.facts
	if f.isControlPlane() || r.victim.DeleteAnnotation == "" || len(f.Owner.Sets) == 0 {
		return false
	}
	gives := f.shrinkingSet()
	return gives != r.victim.Set && r.lostOther(gives)
}

// lostOther reports whether a machine other than the victim that existed before the surge is gone,
// or is being deleted in the MachineSet gives, which loses a machine at a scale-down. A machine
// that is being deleted in another MachineSet does not count, because another client deleted it.
func (r remediation) lostOther(gives string) bool {
	return slices.ContainsFunc(r.Request.Baseline, func(b Subject) bool {
		m := r.facts.machine(b)
		return b.UID != r.Victim.UID && (m == nil || m.Deleting && m.Set == gives)
	})
}
