package remediator

import "time"

// stepSparing and its transitions.
//
//nolint:gochecknoglobals // a table
var (
	stepSparing = step{
		name:   Sparing,
		means:  "The owner no longer asks for more. The machine loses its mark, and new machines are deleted.",
		awaits: remediation.awaitsCancel,
		writes: unwinding,
		exits:  []transition{ownerGone, victimGone, victimLeaving, another, lateReady, raised, restored, cancelled, abandoned},
	}

	cancelled = transition{
		when: "the new machines are gone, and nothing of scute remains", event: Cancelled{}, to: ended,
		facts: func(r remediation) []Event {
			if len(r.newMachines) > 0 && r.unwanted() || len(r.going) > 0 || len(unwinding(r)) > 0 {
				return nil
			}
			return []Event{Cancelled{Cause: r.Cause}}
		},
	}
	abandoned = transition{
		when: "a control plane has not deleted the new machines within `timeouts.removal`; none is handed over any more, and they keep their marks", event: Cancelled{}, to: ended,
		facts: func(r remediation) []Event {
			if !r.reached(r.abandons()) || len(r.giveBack()) > 0 {
				return nil
			}
			return []Event{Cancelled{Cause: r.Cause}}
		},
		deadline: deadline{due: remediation.abandons, then: "it ends as Cancelled, and all machines are decided on again"},
	}
)

// abandons is when a control plane that has not deleted the new machines is left with them; zero while something must be taken back, or a
// machine is being deleted.
func (r remediation) abandons() time.Time {
	marked := r.victim.DeleteMark == DeleteValue && !r.goesAnyway()
	keeps := !r.tooMany() && len(r.giveBack()) > 0
	return dueIf(len(r.going) == 0 && r.method.undone(r) && !marked && !keeps && len(r.relaxOff()) == 0 && len(r.giveBackOff()) == 0, r.staysUntil())
}
