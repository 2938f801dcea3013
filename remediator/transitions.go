package remediator

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// spareAfter is how long a cancellation without a new machine waits before the unhealthy machine loses its mark. A
// machine that the owner had begun to create must appear first, otherwise the owner could delete an older, healthy
// machine instead. It is longer than an owner's slowest call, to an etcd behind a dead kubelet. Waiting costs nothing,
// as all machines exist.
const spareAfter = 30 * time.Second

// The transitions.
//
//nolint:gochecknoglobals // a table
var (
	ownerGone = ends("the owner is gone, and no replicas are raised in the topology of its Cluster", OwnerGone, func(r remediation) string {
		return when(!r.facts.Owner.Found && !r.orphaned(), "the owner is gone")
	})
	ownerDeleted = ends("the owner or its Cluster is being deleted, and no replicas are raised in the topology", OwnerGone, func(r remediation) string {
		return when((r.facts.Owner.Deleting || r.facts.Cluster.Deleting) && !r.orphaned(), "the owner is being deleted")
	})
	victimGone = transition{
		when: "the machine is gone, or is kept: it is drained, and counts for nothing any more", event: VictimGone{}, to: Settling,
		facts: func(r remediation) []Event {
			if r.victim != nil {
				return nil
			}
			return []Event{VictimGone{Kept: r.facts.present(r.Victim) != nil}}
		},
	}

	victimLeaving = seen("the machine is being deleted", VictimDeleting{}, Deleting, func(r remediation) bool {
		return r.victim != nil && r.victim.Deleting
	})
	replacementSeen = transition{
		when: "a machine exists that did not before, and there is no other new machine", event: ReplacementObserved{}, to: Replacing,
		facts: remediation.observed,
	}
	another = transition{
		when: "a machine exists that did not before", event: ReplacementObserved{Extra: true}, to: same,
		facts: remediation.observed,
	}
	relaxed = transition{
		when: "components of the machine are no longer well, so that the owner makes no other one, and its preflight may be relaxed", event: SurgeRelaxed{}, to: same,
		facts: remediation.worsened,
	}
	replacementReady = transition{
		when: "the new machine has joined, and is ready", event: ReplacementReady{}, to: Removing,
		facts: func(r remediation) []Event {
			m := r.facts.machine(r.Replacement)
			if r.Ready || m == nil || !m.ready(OwnerKind(r.facts.Owner.Kind), r.facts.Owner.ExternalEtcd) {
				return nil
			}
			return []Event{ReplacementReady{Replacement: r.Replacement}}
		},
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
	raised = seen("replicas are what was asked for", ScaleRaised{}, same, func(r remediation) bool {
		return r.scales() && r.Scale == ScaleUnseen && r.replicas == r.Request.To
	})
	restored = seen("replicas are what they were", ScaleRestored{}, same, func(r remediation) bool {
		return r.scales() && r.Scale == ScaleUp && r.replicas == r.Request.From && r.Frozen != freezeForeign
	})

	aborted = cancels("an operator aborts it", Aborted, func(r remediation) string {
		return when(r.unhealthy != nil && r.unhealthy.Aborted, "an operator aborted it")
	})
	skipped = cancels("the machine has the annotation skip-remediation", Aborted, func(r remediation) string {
		return when(r.victim != nil && r.victim.Skip, "the machine has the annotation cluster.x-k8s.io/skip-remediation now")
	})
	deselected = cancels("no RepairPolicy selects the machine", Deselected, func(r remediation) string {
		return when(r.facts.Policy.Name == "", "no RepairPolicy selects the machine any more")
	})
	recovered = cancels("the machine is healthy, no other machine goes for it when this is taken back, and what freezes it, if anything, does not keep scute from seeing or writing", Recovered, func(r remediation) string {
		healthy := r.unhealthy == nil || r.unhealthy.Mark == nil
		free := slices.Contains([]string{"", freezeForeign, freezeRisk, freezeRequest, freezeHold}, r.Frozen)
		return when(healthy && free && !r.committed() && !r.facts.withinGracePeriod(), "the machine is healthy again")
	})

	turned = expires("components of the machine have not been well for a minute, so that the owner makes no other one; its preflight may not be relaxed, and the owner may remediate the machine itself", Worsened, remediation.turns, func(r remediation) string {
		return fmt.Sprintf("%s since %s was asked, which makes no machine now", caseOf(r.victim, r.facts, r.stranded).illness(), r.facts.Owner.Name)
	})
	superseded = expires("a rollout or a pending upgrade of the owner lasts longer than `timeouts.scaleUp` and `timeouts.ready` together", Superseded, func(r remediation) time.Time {
		return dueIf(r.rolling(), r.within(r.facts.Policy.Timeouts.ScaleUp+r.facts.Policy.Timeouts.Ready))
	}, func(r remediation) string {
		limit := r.facts.Policy.Timeouts.ScaleUp + r.facts.Policy.Timeouts.Ready
		return fmt.Sprintf("a rollout or an upgrade came in between, and %s made no replacement that is ready within %s", r.facts.Owner.Name, limit)
	})
	held   = cancels("`hold` has frozen it", Held, func(r remediation) string { return when(r.Frozen == freezeHold, "%s", r.FrozenReason) })
	unsafe = expires("`quorum-risk` has frozen it for `timeouts.scaleUp`", Unsafe, func(r remediation) time.Time {
		return dueIf(r.Frozen == freezeRisk, r.FrozenAt.Add(r.facts.Policy.Timeouts.ScaleUp))
	}, func(r remediation) string { return r.FrozenReason })

	noReplacement = expires("no new machine within `timeouts.scaleUp`", TimedOut, func(r remediation) time.Time {
		return r.allowed(r.facts.Policy.Timeouts.ScaleUp)
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not act within %s%s", r.facts.Owner.Name, r.facts.Policy.Timeouts.ScaleUp, r.obstacle())
	})
	notReady = expires("the new machine is not ready within `timeouts.ready`", TimedOut, func(r remediation) time.Time {
		return r.allowed(r.facts.Policy.Timeouts.Ready)
	}, func(r remediation) string {
		return fmt.Sprintf("replacement %s was not ready within %s", r.Replacement.Name, r.facts.Policy.Timeouts.Ready)
	})
	blocked = expires("the owner cannot delete the machine for `timeouts.scaleUp`, as components of another one are not well", TimedOut, func(r remediation) time.Time {
		return dueIf(r.stuck(), r.allowed(r.facts.Policy.Timeouts.ScaleUp))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, r.facts.Policy.Timeouts.ScaleUp, r.obstacle())
	})
	notRemoved = expires("the owner does not delete the machine within `timeouts.removal`", TimedOut, func(r remediation) time.Time {
		return dueIf(r.facts.Policy.Timeouts.Removal > 0, r.allowed(r.facts.Policy.Timeouts.Removal))
	}, func(r remediation) string {
		return fmt.Sprintf("%s did not delete the machine within %s%s", r.facts.Owner.Name, r.facts.Policy.Timeouts.Removal, r.obstacle())
	})
	reverted = expires("somebody else has put replicas back for half a minute, or has set others for `timeouts.scaleUp`", Reverted, func(r remediation) time.Time {
		limit := r.facts.Policy.Timeouts.ScaleUp
		if r.replicas == r.Request.From {
			limit = spareAfter
		}
		return dueIf(r.Frozen == freezeForeign, r.FrozenAt.Add(limit))
	}, func(r remediation) string {
		return fmt.Sprintf("somebody else set the replicas to %d while %d were asked for", r.replicas+r.facts.less, r.Request.To+r.facts.less)
	})

	taken = transition{
		when: "replicas are restored, and there are no more machines than users want: the new machine has the place of another one", event: SurgeConsumed{}, to: ended,
		facts: func(r remediation) []Event {
			if !r.scales() || r.Scale != ScaleBack || r.waits > 0 || r.tooMany() || r.Replacement.UID == "" {
				return nil
			}
			if r.surprised() {
				return []Event{SurgeConsumed{Surprise: true, Why: r.facts.Owner.Name + " deleted another machine than the one that is marked; the new machine has taken its place"}}
			}
			return []Event{SurgeConsumed{Why: "there are no more machines than users want now: the new machine has the place of another one"}}
		},
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

	cancelled = transition{
		when: "the new machines are gone, and nothing of scute remains", event: Cancelled{}, to: ended,
		facts: func(r remediation) []Event {
			if len(r.newMachines) > 0 && r.unwanted() || r.waits > 0 || len(unwinding(r)) > 0 {
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
	succeeded = transition{
		when: "the replacement, or all machines, are ready, and nothing of ours is left", event: Succeeded{}, to: ended,
		facts: func(r remediation) []Event {
			note, ok := r.complete()
			if !ok || !r.clean() {
				return nil
			}
			return []Event{Succeeded{Note: note}}
		},
	}
	hanging = transition{
		when: "a worker is being deleted for longer than `timeouts.removal`, its replacement is ready, and replicas are back", event: Succeeded{}, to: ended,
		facts: func(r remediation) []Event {
			if !r.reached(r.hangsFrom()) {
				return nil
			}
			return []Event{Succeeded{Note: fmt.Sprintf("it is still there after %s of deletion: see its drain, its volumes, its infrastructure", r.facts.Policy.Timeouts.Removal)}}
		},
		deadline: deadline{due: remediation.hangsFrom, then: "it ends as Succeeded, though the machine is still there"},
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

// dueIf is a time, if it is so, and else none.
func dueIf(so bool, at time.Time) time.Time {
	if !so {
		return time.Time{}
	}
	return at
}

// when is a reason, if it is so.
func when(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// allowed is until when a step may take, zero without bound. While a rollout is to take the marked machine first, it has more time: see
// superseded.
func (r remediation) allowed(limit time.Duration) time.Time {
	return dueIf(!r.rolling() || r.Request.Method == OwnerRemediation, r.within(limit))
}

// within is when a step has taken so long. Time in which no action is possible does not count: it is zero then.
func (r remediation) within(limit time.Duration) time.Time {
	return dueIf(r.Frozen == "" && !r.facts.withinGracePeriod(), r.Since.Add(limit))
}

// settlesBy is when the place of a machine that is gone must be taken.
func (r remediation) settlesBy() time.Time {
	limit := r.facts.Policy.Timeouts.Ready + r.facts.Policy.Timeouts.ScaleUp
	if slices.ContainsFunc(r.stranded, r.facts.stalls) {
		limit = r.facts.Policy.Timeouts.ScaleUp
	}
	return dueIf(r.facts.Policy.Unreadable == "" && r.clean(), r.within(limit))
}

// abandons is when a control plane that has not deleted the new machines is left with them; zero while something must be taken back, or a
// machine is being deleted.
func (r remediation) abandons() time.Time {
	marked := r.victim.DeleteMark == DeleteValue && !r.goesAnyway()
	return dueIf(r.waits == 0 && r.method.undone(r) && !marked && len(r.relaxOff()) == 0 && len(r.giveBackOff()) == 0, r.staysUntil())
}

// hangsFrom is when nobody waits any longer for a worker that is being deleted, and is replaced; zero while it is not.
func (r remediation) hangsFrom() time.Time {
	replaced := r.Ready && r.facts.machine(r.Replacement) != nil && r.method.undone(r) && !r.tooMany()
	return dueIf(!r.facts.isControlPlane() && replaced, r.removedBy(r.victim))
}

// removedBy is when a machine that is being deleted must be gone, zero without bound.
func (r remediation) removedBy(m *Machine) time.Time {
	limit := r.facts.Policy.Timeouts.Removal
	if m == nil || !m.Deleting || limit <= 0 {
		return time.Time{}
	}
	return m.DeletingSince.Add(limit)
}

// worsened says that what was decided for a machine whose components were healthy, or reported so, no longer holds. The
// owner creates no new machine before they are healthy again, or it is allowed to.
func (r remediation) worsened() []Event {
	if !r.mayTurn() || r.Request.Relaxed {
		return nil
	}
	if c := caseOf(r.victim, r.facts, r.stranded); c.answers && len(c.broken) > 0 && c.mayRelax() {
		return []Event{SurgeRelaxed{Reason: c.illness() + " since " + r.facts.Owner.Name + " was asked"}}
	}
	return nil
}

// turns is when a surge that was asked for must no longer be waited for, zero for never: its owner creates no new machine while components
// of the machine are not well, and would take the machine itself. What recovers within a minute is no reason.
func (r remediation) turns() time.Time {
	if !r.mayTurn() || r.Request.Relaxed || Blind(r.facts) {
		return time.Time{} // with a relaxed preflight the owner may make one all the same; what is not seen decides nothing
	}
	c := caseOf(r.victim, r.facts, r.stranded)
	if len(c.broken) == 0 {
		return time.Time{}
	}
	d := c.relaxed()
	if !c.answers {
		d = c.deleteFirst("c", "its etcd member "+c.silence())
	}
	return dueIf(d.Verdict == OwnerRemediation, r.victim.brokenSince().Add(time.Minute))
}

// mayTurn says that a control plane was asked for a new machine, and may be asked for something else: none exists, nothing freezes it, and
// no rollout makes one.
func (r remediation) mayTurn() bool {
	return r.facts.isControlPlane() && r.Request.Method != OwnerRemediation && r.Frozen == "" && !r.facts.withinGracePeriod() && !r.rolling() && len(r.newMachines) == 0
}

// brokenSince is since when components of the machine are not well.
func (m *Machine) brokenSince() time.Time {
	var first time.Time
	for _, name := range slices.Concat([]string{clusterv1.MachineNodeReadyCondition}, names(components)) {
		seen, ok := m.Conditions[name]
		silent := name != clusterv1.MachineNodeReadyCondition || m.silent()
		if ok && seen.Status != object.True && silent && (first.IsZero() || seen.Since.Before(first)) {
			first = seen.Since
		}
	}
	return first
}

// late is a new machine that is ready after all, nil without. The owner does not delete it while the components of the unhealthy machine
// are broken; it does delete the unhealthy machine. While the owner is asked to remediate a new machine, none is counted on.
func (r remediation) late() *Machine {
	if !r.resumable() || slices.ContainsFunc(r.newMachines, handedOver) {
		return nil
	}
	for _, m := range r.newMachines {
		if !r.extra(m) && m.ready(OwnerKind(r.facts.Owner.Kind), r.facts.Owner.ExternalEtcd) {
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
	case r.stuck():
		return false // its owner would not delete the machine either
	default: // one that was ready before can be deleted, unless the components of the unhealthy machine are broken
		return !r.Ready || r.in(Sparing) && len(r.victim.broken(r.facts.Owner.ExternalEtcd)) > 0
	}
}

// unopposed says that nothing is against the replacement of a machine that would be against a first one, and that the machine can go.
func (s *State) unopposed(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) bool {
	if u == nil || m == nil || foreignState(u, m, f, now) != nil || s.consent(u, m, f, now) != nil || len(f.Policy.holding(m)) > 0 {
		return false
	}
	return !f.isControlPlane() || blind(f) == nil && f.removed(m).none() && !caseOf(m, f, nil).leadsUnasked()
}

// surprised says that the owner of workers took another machine than the marked one, and would again: another MachineSet loses one when
// there is one too many. Within a MachineSet the marked machine goes first; there somebody else deleted the other one.
func (r remediation) surprised() bool {
	f := r.facts
	if f.isControlPlane() || r.victim.DeleteMark == "" || len(f.Owner.Sets) == 0 {
		return false
	}
	gives := f.gives()
	return gives != r.victim.Set && r.lost(gives)
}

// lost says that a machine from before, other than the victim, is gone, or is being deleted and belongs to the MachineSet that loses a
// machine when there is one too many: one of another MachineSet, somebody else has deleted.
func (r remediation) lost(gives string) bool {
	return slices.ContainsFunc(r.Request.Baseline, func(b Subject) bool {
		m := r.facts.machine(b)
		return b.UID != r.Victim.UID && (m == nil || m.Deleting && m.Set == gives)
	})
}

// observed are the new machines that the log does not know. The first takes the place of a replacement that is not
// there. Where replicas were raised, the others are extras, unless a rollout makes them, or the owner is asked for no
// more.
func (r remediation) observed() []Event {
	var events []Event
	replacement := r.facts.machine(r.Replacement)
	if r.Replacement.UID == "" || replacement == nil || replacement.Deleting {
		replacement = nil
		for _, m := range r.newMachines {
			if m.UID != r.Replacement.UID && !r.extra(m) {
				replacement = m
				events = append(events, ReplacementObserved{Replacement: m.subject()})
				break
			}
		}
	}
	if replacement == nil || !r.scales() || r.rolling() || r.takingBack() || r.in(Settling) && !r.tooMany() {
		return events
	}
	for _, m := range r.newMachines {
		if m.UID != replacement.UID && !r.extra(m) {
			events = append(events, ReplacementObserved{Replacement: m.subject(), Extra: true})
		}
	}
	return events
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

// clean says that nothing is left to write for a remediation whose unhealthy machine is gone, and that no machine is
// being deleted.
func (r remediation) clean() bool {
	marked := slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return m.DeleteMark == DeleteValue })
	return r.waits == 0 && len(settling(r)) == 0 && (!marked || r.method.undone(r))
}
