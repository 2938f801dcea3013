package remediator

import (
	"cmp"
	"slices"
	"time"
)

//nolint:gochecknoglobals // a table
var (
	stepSettling = step{
		name:   Settling,
		means:  "The unhealthy machine is gone. Its replacement must become ready, and nothing of scute may remain.",
		awaits: remediation.awaitsPlace,
		writes: settling,
		exits:  []transition{ownerGone, another, replacementReady.leading(same), raised, restored, succeeded, notSettled},
	}

	succeeded = transition{
		when: "the replacement, or all machines, are ready, and nothing of ours is left", event: Succeeded{}, to: ended,
		facts: func(r remediation) []Event {
			note, ok := r.complete()
			if !ok || !r.clean() {
				return nil
			}
			return []Event{Succeeded{Note: note, Gone: r.Replacement.UID != "" && r.facts.machine(r.Replacement) == nil}}
		},
	}
	notSettled = transition{
		when: "nothing of ours is left, and the replacement is not ready within `timeouts.ready` and `timeouts.scaleUp` together; within `timeouts.scaleUp` where a machine that never joined keeps the owner from making one", event: Cancelled{Cause: TimedOut}, to: ended,
		facts: func(r remediation) []Event {
			if !r.reached(r.settlesBy()) {
				return nil
			}
			return []Event{CancelStarted{Cause: TimedOut, Reason: "the machine is gone, and its replacement is not ready in time"}, Cancelled{Cause: TimedOut}}
		},
		deadline: deadline{due: remediation.settlesBy, then: "it ends as Cancelled"},
	}
)

func (r remediation) awaitsPlace() string {
	return cmp.Or(r.Replacement.Name, "another machine") + " becomes ready"
}

// settling returns the writes that remove everything that scute wrote, after the machine is gone.
func settling(r remediation) []Action {
	actions := r.method.hold(r)
	for _, m := range r.newMachines {
		if r.method.undone(r) && m.DeleteMark == DeleteValue && r.unneeded(m) {
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject()})
		}
	}
	return slices.Concat(actions, r.unmarked(), r.giveBack(), r.giveBackOff(), r.relaxOff(), r.touch(false, ""))
}

// unneeded reports whether a new machine needs no delete annotation after the unhealthy machine is gone. A machine that is neither the replacement
// nor a surplus of the surge was created for users, who may want fewer machines now.
func (r remediation) unneeded(m *Machine) bool {
	switch {
	case r.extra(m):
		return !r.tooMany()
	case m.UID == r.Replacement.UID:
		return true
	default:
		return r.facts.leftBehind(m)
	}
}

// settlesBy returns when the replacement of a machine that is gone must be ready. It returns zero while something must be written or deleted.
func (r remediation) settlesBy() time.Time {
	limit := r.facts.Policy.Timeouts.Ready + r.facts.Policy.Timeouts.ScaleUp
	if slices.ContainsFunc(r.stranded, r.facts.stalls) {
		limit = r.facts.Policy.Timeouts.ScaleUp
	}
	return dueIf(r.facts.Policy.Unreadable == "" && r.clean(), r.within(limit))
}

// clean reports whether nothing remains to be written for a remediation whose unhealthy machine is gone, and no machine is being deleted.
func (r remediation) clean() bool {
	marked := slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return m.DeleteMark == DeleteValue })
	return len(r.going) == 0 && len(settling(r)) == 0 && (!marked || r.method.undone(r))
}
