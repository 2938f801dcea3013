package remediator

import (
	"fmt"
	"slices"
	"time"
)

// spareAfter is how long a cancellation without a new machine waits before the unhealthy machine loses its mark. A
// machine that the owner had begun to create must appear first, otherwise the owner could delete an older, healthy
// machine instead. It is longer than an owner's slowest call, to an etcd behind a dead kubelet. Waiting costs nothing,
// as all machines exist. For as long after that, the owner may not have seen that the mark is gone.
const spareAfter = 30 * time.Second

// stepCancelling and its transitions.
//
//nolint:gochecknoglobals // a table
var (
	stepCancelling = step{
		name:   Cancelling,
		means:  "What was asked for is taken back. The machine keeps its delete mark.",
		awaits: remediation.awaitsCancel,
		writes: unwinding,
		exits:  []transition{ownerGone, victimGone, victimLeaving, another, lateReady, raised, restored, spared},
	}

	lateReady = transition{
		when: "the replacement has timed out, and the new machine is ready now; the old machine is still unhealthy, nothing is against replacing it, no new machine is handed over, and neither components of another machine nor a surplus new machine keep the owner from deleting it", event: ReplacementReady{}, to: Removing,
		facts: func(r remediation) []Event {
			if !r.unopposed || r.late() == nil {
				return nil
			}
			return []Event{ReplacementReady{Replacement: r.late().subject()}}
		},
		deadline: deadline{due: func(r remediation) time.Time { return dueIf(!r.unopposed && r.late() != nil, r.opposedUntil) }, then: "it continues, as the new machine is ready"},
	}
	spared = transition{
		when: "replicas, rollout trigger and conditions are restored, the owner has observed it, and each surplus new machine has a mark", event: VictimSpared{}, to: Sparing,
		facts: func(r remediation) []Event {
			if now, due := r.mayBeSpared(); !now && !r.reached(due) {
				return nil
			}
			return []Event{VictimSpared{}}
		},
		deadline: deadline{due: func(r remediation) time.Time {
			_, due := r.mayBeSpared()
			return due
		}, then: "the machine loses its mark"},
	}
)

func (r remediation) awaitsCancel() string {
	switch {
	case r.in(Cancelling) && r.victim != nil && !r.method.undone(r):
		return fmt.Sprintf("the replacement is cancelled: what %s was asked for is taken back, and it must have seen that; if this lasts, see whether its controller runs", r.facts.Owner.Name)
	case r.in(Cancelling) || r.Replacement.Name == "":
		return "the replacement is cancelled"
	case len(r.Extras) > 0:
		return fmt.Sprintf("%s deletes what is too many of %s", r.facts.Owner.Name, r.newNames())
	default:
		return fmt.Sprintf("%s deletes %s", r.facts.Owner.Name, r.Replacement.Name)
	}
}

// unwinding are the writes that undo the request: the marks of the new machines first, that of the unhealthy machine
// last.
func unwinding(r remediation) []Action {
	var actions []Action
	for _, m := range r.newMachines {
		switch {
		case m.DeleteMark == "" && r.unwanted():
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject(), Value: DeleteValue})
		case m.DeleteMark == DeleteValue && r.in(Sparing) && !r.unwanted() && r.method.undone(r):
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject()}) // people want it now
		}
	}
	actions = slices.Concat(actions, r.relaxOff(), r.method.undo(r), r.giveBack(), r.giveBackOff())
	if r.in(Sparing) && r.victim != nil && r.victim.DeleteMark == DeleteValue && !r.goesAnyway() {
		actions = append(actions, r.set(SetDelete, ""))
	}
	return append(actions, r.touch(!r.in(Sparing) || len(r.newMachines) > 0 && r.tooMany(), "-cancel")...)
}

// goesAnyway says that the machine is one too many of an earlier remediation, which has marked it. A hand-over sets no such mark, and
// its end takes none off: without it the owner would delete an older machine, which is healthy.
func (r remediation) goesAnyway() bool {
	return r.Request.Method == OwnerRemediation && r.tooMany()
}

// late is a new machine that is ready after all, nil without. The owner does not delete it while the components of the unhealthy machine
// are broken; it does delete the unhealthy machine. While the owner is asked to remediate a new machine, none is counted on.
func (r remediation) late() *Machine {
	if !r.resumable() || slices.ContainsFunc(r.newMachines, handedOver) {
		return nil
	}
	for _, m := range r.newMachines {
		if !r.extra(m) && r.facts.ready(m) {
			return m
		}
	}
	return nil
}

// resumable says that what is being taken back may be continued with a new machine that is ready. It is continued no more often than a
// replacement is begun.
func (r remediation) resumable() bool {
	switch unhealthy := r.unhealthy != nil && r.unhealthy.Mark != nil && r.unhealthy.Mark.State == Unhealthy; {
	case r.Cause != TimedOut || r.Request.Method == OwnerRemediation || !unhealthy || !r.tooMany() || r.Resumed >= r.facts.Policy.Attempts:
		return false
	case !r.facts.isControlPlane():
		return !r.Ready
	case r.stuck() || r.outranked():
		return false // its owner would not delete the machine either
	default: // one that was ready before can be deleted, unless the components of the unhealthy machine are broken
		return !r.Ready || r.in(Sparing) && len(r.victim.broken(r.facts.Owner.ExternalEtcd)) > 0
	}
}

// outranked says that somebody has marked another machine, which the owner of this one may want to delete first, and cannot because of this one.
func (r remediation) outranked() bool {
	return r.victim != nil && len(r.victim.broken(r.facts.Owner.ExternalEtcd)) > 0 &&
		slices.ContainsFunc(r.facts.Machines, func(m Machine) bool { return r.markedByOthers(&m) })
}

// unopposed says that nothing is against the replacement of a machine that would be against a first one, and that the machine can go.
func (s *State) unopposed(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) bool {
	if u == nil || m == nil || foreignState(u, m, f, now) != nil || s.consent(u, m, f, now) != nil || len(f.Policy.holding(m)) > 0 {
		return false
	}
	return !f.isControlPlane() || blind(f) == nil && f.removed(m).none() && !caseOf(m, f, nil).leadsUnasked()
}

// mayBeSpared says that the unhealthy machine may lose its mark, now or when due. There is never a moment with one machine too many and
// no mark: the owner would delete the oldest one, which is healthy.
func (r remediation) mayBeSpared() (now bool, due time.Time) {
	for _, m := range r.newMachines {
		if m.DeleteMark == "" && r.unwanted() {
			return false, time.Time{}
		}
	}
	if r.victim == nil || !r.method.undone(r) || r.committed() && r.tooMany() && r.victim.DeleteMark != "" {
		return false, time.Time{}
	}
	came := len(r.newMachines) > 0 || r.Replacement.UID != ""
	return came && !r.tookAnothersPlace(), r.Since.Add(spareAfter)
}

// tookAnothersPlace says that the new machine replaces one that somebody else has deleted meanwhile. The owner may still
// be creating the one that was requested.
func (r remediation) tookAnothersPlace() bool {
	return r.Request.Method == RolloutSurge && !r.tooMany() && slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return !m.Deleting })
}

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
