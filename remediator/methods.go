package remediator

import (
	"cmp"
	"fmt"
	"slices"

	"scute.dev/kube/object"
)

// method is one way to have a machine replaced: its writes request the replacement from the owner,
// or undo the request. A method makes no decisions. It may be called at any time, in any state.
type method interface {
	// request returns the writes that make the owner replace the machine, in their order.
	request(r remediation) []Action
	// retract returns the writes that undo the part of the request that is no longer needed or
	// safe. It requests nothing.
	retract(r remediation) []Action
	// undo returns the writes that undo the request. They do not remove the victim's delete annotation.
	undo(r remediation) []Action
	// undone reports whether the request is undone and the owner has observed that.
	undone(r remediation) bool
	// requesting reports whether more machines are still requested from the owner. The owner may
	// already have created a machine that was not observed yet.
	requesting(r remediation) bool
	// desiredReplicas returns the number of machines that users want.
	desiredReplicas(r remediation) int
}

func methodOf(a *Active, f *Facts) method {
	switch {
	case a.Request.Method == RolloutSurge:
		return rolloutSurge{}
	case a.Request.Method == Surge && f.isControlPlane():
		return replicaSurge{}
	case a.Request.Method == Surge:
		return workerSurge{}
	default:
		return handOver{}
	}
}

func (r remediation) scales() bool { return r.Request.Method == Surge }

// rolloutSurge makes only the victim outdated, so that the owner's own rollout creates one machine
// and deletes the victim.
type rolloutSurge struct{ fixedReplicas }

func (rolloutSurge) request(r remediation) []Action {
	return r.surge(r.setTrigger(r.Request.TriggerValue))
}

func (rolloutSurge) retract(remediation) []Action { return nil }

// undo restores the original value of the trigger if the trigger is observed to be set. Unless the
// log has the trigger, ClonedFrom is only read for suspect machines; the delete annotation
// therefore comes before the trigger and is removed after it.
func (rolloutSurge) undo(r remediation) []Action {
	if !r.triggerSet() {
		return nil
	}
	return r.setTrigger(r.Request.Original)
}

func (rolloutSurge) undone(r remediation) bool { return !r.triggerSet() }

// triggerSet reports whether the owner still observes the trigger on the victim.
func (r remediation) triggerSet() bool {
	switch {
	case r.victim == nil:
		return false
	case r.Request.Trigger == TriggerCertificates:
		return r.Request.TriggerValue != "" && (r.victim.Certificates == r.Request.TriggerValue || r.victim.CertificatesStatus == r.Request.TriggerValue)
	default:
		return r.victim.ClonedFrom == r.Request.TriggerValue
	}
}

// setTrigger sets the trigger to a value. It does not overwrite a certificate expiry that another
// client has written since.
func (r remediation) setTrigger(value string) []Action {
	switch {
	case r.victim == nil:
		return nil
	case r.Request.Trigger == TriggerCertificates && r.victim.Certificates != value && slices.Contains([]string{r.Request.Original, r.Request.TriggerValue}, r.victim.Certificates):
		return []Action{r.set(SetCertificates, value)}
	case r.Request.Trigger == TriggerClonedFrom && r.victim.ClonedFrom != value:
		return []Action{r.set(SetClonedFrom, value)}
	default:
		return nil
	}
}

// replicaSurge requests more replicas from a control plane until a new machine exists.
type replicaSurge struct{ raisedReplicas }

func (replicaSurge) request(r remediation) []Action {
	return append(r.surge(r.scaleUp()), r.scaleDown()...)
}

func (replicaSurge) undo(r remediation) []Action {
	return r.undoScale(len(r.newMachines) == 0 && !r.in(sparing)) // a new machine may exist that was not observed yet
}

// surge returns the writes that request one more machine from a control plane. The victim's delete
// annotation always comes first, then start, which makes the owner act.
func (r remediation) surge(start []Action) []Action {
	actions := r.moveLeadership()
	if r.victim.DeleteAnnotation == "" {
		actions = append(actions, r.set(SetDelete, DeleteValue))
	}
	actions = slices.Concat(actions, r.unmarkReplacement(), start)
	waiting := r.Replacement.UID == "" && len(r.newMachines) == 0
	if waiting && r.Request.Relaxed {
		actions = append(actions, r.addRelaxed()...)
	}
	if !waiting {
		actions = append(actions, r.removeRelaxed()...)
	}
	return append(actions, r.touch(waiting, "")...)
}

// unmarkReplacement removes the delete annotation from a replacement that became ready after its
// cancellation. The victim has the annotation then.
func (r remediation) unmarkReplacement() []Action {
	return actionsFor(r.facts.all(), SetDelete, func(m *Machine) bool {
		return m.UID == r.Replacement.UID && m.DeleteAnnotation == DeleteValue && r.Ready && !r.isSurplus(m) && !r.method.requesting(r) && r.victim.DeleteAnnotation != ""
	})
}

// moveLeadership moves the leadership of etcd away from a victim with broken components, because
// its owner cannot. A member that does not answer loses the leadership by itself.
func (r remediation) moveLeadership() []Action {
	member := r.facts.Etcd.member(r.victim)
	if !member.answering() || !member.Leader || !r.facts.isBroken(r.victim) {
		return nil
	}
	to := cmp.Or(r.facts.Etcd.otherVoter(member.Node, r.facts.onHealthyMachine), r.facts.Etcd.otherVoter(member.Node, (*Member).answering))
	if to == nil {
		return nil
	}
	return []Action{r.set(MoveLeadership, to.Node)}
}

// otherVoter returns a voter on another node that answers and fits, or nil.
func (e *Etcd) otherVoter(node string, fits func(*Member) bool) *Member {
	return find(e.Members, func(m *Member) bool { return m.Node != node && !m.Learner && m.answering() && fits(m) })
}

// onHealthyMachine reports whether a member of etcd runs on a healthy machine that is not being
// deleted. Only such a member should become the leader: before any other machine is deleted, its
// owner would have to move the leadership again, which it may be unable to do.
func (f *Facts) onHealthyMachine(member *Member) bool {
	m := f.machineOf(*member)
	return m != nil && !m.Deleting && !f.isBroken(m)
}

func (r remediation) addRelaxed() []Action {
	if r.facts.Owner.Relaxed != "" {
		return nil
	}
	at := r.StartedAt
	for m := range r.facts.all() { // the owner removes the annotation if a machine is newer than its timestamp, as after a clock was set back
		at = later(at, m.Created)
	}
	n := remediationNote{Machine: r.Victim.Name, Timestamp: utc(at)}
	if before, ok := parseNote(r.victim.RemediationFor); ok {
		n.RetryCount = before.RetryCount // a chain of retries continues to count
	}
	return []Action{r.set(SetRelaxed, toJSON(n))}
}

// removeRelaxed removes the annotation that relaxes the owner's preflight checks. The owner itself
// keeps the annotation if the remaining preflight checks fail, and then remediates no other
// machine.
func (r remediation) removeRelaxed() []Action {
	return actionIf(r.Request.Relaxed && RelaxedFor(r.facts.Owner.Relaxed) == r.Victim.Name, r.set(SetRelaxed, ""))
}

// touch changes an annotation of the owner to trigger its controller, which does not watch the
// infrastructure machine with the rollout trigger.
func (r remediation) touch(needed bool, why string) []Action {
	want := ""
	if needed && r.Request.Trigger == TriggerClonedFrom {
		want = fmt.Sprintf("%s-%d%s", r.Victim.Name, r.Request.Attempt, why)
	}
	return actionIf(r.facts.Owner.Touched != want && r.facts.isControlPlane(), r.set(Touch, want))
}

// workerSurge requests one more worker, waits until it is ready, and sets the victim's delete annotation.
type workerSurge struct{ raisedReplicas }

func (workerSurge) request(r remediation) []Action {
	actions := r.scaleUp()
	if r.ready() && r.victim.DeleteAnnotation == "" && r.tooMany() {
		actions = append(actions, r.set(SetDelete, DeleteValue))
	}
	return slices.Concat(actions, r.unmarkReplacement(), r.scaleDown())
}

// ready reports whether the replacement is ready now. r.Ready only records that it was ready once.
func (r remediation) ready() bool {
	m := r.facts.machine(r.Replacement)
	return r.Ready && m != nil && r.facts.ready(m)
}

// undo restores the replicas. It sets the delete annotation of the unhealthy machine first if the
// owner would otherwise delete an older, healthy machine instead of the new one. It also does so
// while the machine is unhealthy and a new machine may exist that was not observed yet, except
// after an abort by an operator.
func (workerSurge) undo(r remediation) []Action {
	return r.undoScale(r.committed() || r.unhealthy.isUnhealthy() && len(r.newMachines) == 0 && r.Cause != Aborted)
}

// handOver asks the owner to remediate the machine itself, which deletes the machine first.
type handOver struct{ fixedReplicas }

func (handOver) request(r remediation) []Action {
	if r.victim.Deleting || handedOver(r.victim) || !r.facts.riskOfRemoval(r.victim).none() {
		return nil
	}
	return slices.Concat(r.moveLeadership(), r.reportOthers(r.victim), r.unblockOwner(), []Action{r.set(HandOver, "")})
}

// unblockOwner removes the owner's annotation remediation-in-progress if that remediation cannot
// end because of the victim.
func (r remediation) unblockOwner() []Action {
	name, _ := r.facts.orphan()
	return actionIf(r.facts.stallsOwner(r.victim), Action{Type: SetRelaxed, Machine: Subject{Name: name}})
}

// reportOthers reports the other machines that never joined as unhealthy to the control plane.
// KubeadmControlPlane remediates no machine while it considers one of these machines to be still
// starting (HasHealthyMachineStillProvisioning).
func (r remediation) reportOthers(handed *Machine) []Action {
	return actionsFor(slices.Values(r.stranded), Report, func(m *Machine) bool { return m != handed && m.lastCheck().Status != object.False })
}

// retract withdraws the request to remediate if the owner has not started yet, for example because
// quorum would be lost or is unknown.
func (handOver) retract(r remediation) []Action {
	return actionIf(handedOver(r.victim) && !r.victim.Deleting, r.set(Withdraw, ""))
}

// undo withdraws the request to remediate. If the machine is no longer marked unhealthy, it resets
// the other conditions of the remediation too.
func (h handOver) undo(r remediation) []Action {
	switch {
	case !handedOver(r.victim):
		return nil
	case r.unhealthy.marked():
		return h.retract(r)
	default:
		return []Action{r.set(ClearConditions, "")}
	}
}

func (handOver) undone(r remediation) bool { return !handedOver(r.victim) }

type fixedReplicas struct{}

func (fixedReplicas) requesting(remediation) bool       { return false }
func (fixedReplicas) desiredReplicas(r remediation) int { return int(r.facts.Owner.Replicas) }

type raisedReplicas struct{}

// requesting returns false after the replicas were restored: if users set the same number later,
// the number is their request. After a merge, the replicas may be one less than To, because the
// last increase was not written, or was undone without this being observed.
func (raisedReplicas) requesting(r remediation) bool {
	one := r.Merged && r.replicas == r.Request.To-1 && r.replicas > r.Request.From
	return r.Scale != scaleRestored && (one || r.replicas == r.Request.To)
}

func (s raisedReplicas) desiredReplicas(r remediation) int {
	if s.requesting(r) {
		return int(r.Request.From)
	}
	return int(r.replicas)
}

func (s raisedReplicas) undone(r remediation) bool {
	return !s.requesting(r) && r.facts.Owner.Replicas == r.replicas && r.facts.Owner.Observed
}

func (r remediation) scaleUp() []Action {
	needed := r.Scale == scaleUnobserved && len(r.newMachines) == 0 && !r.ownerRollingOut() && r.replicas != r.Request.To
	return actionIf(needed, r.scale(r.Request.From, r.Request.To))
}

func (r remediation) scaleBack() []Action {
	return actionIf(r.method.requesting(r), r.scale(r.replicas, r.Request.From))
}

func (r remediation) scale(from, to int32) Action {
	return Action{Type: Scale, Machine: r.Victim, Where: r.Request.Where, Entry: r.Request.Entry, Replicas: to, Expect: from}
}

// undoScale restores the replicas. If mark is true, the victim gets the delete annotation before that.
func (r remediation) undoScale(mark bool) []Action {
	back := r.scaleBack()
	mark = mark && len(back) > 0 && r.victim != nil && r.victim.DeleteAnnotation == ""
	return append(actionIf(mark, r.set(SetDelete, DeleteValue)), back...)
}

// isDeletedFirst reports whether the victim is being deleted and is the machine that the owner
// deletes at a scale-down. Once it is gone, the owner would create another machine for the raised
// replicas, and delete any machine for the restored ones.
func (r remediation) isDeletedFirst() bool {
	f := r.facts
	return r.victim != nil && r.victim.Deleting && f.Owner.RollingOut == "" && (len(f.Owner.Sets) == 0 || f.shrinkingSet() == r.victim.Set)
}

// scaleDown restores the replicas as soon as a new machine exists or a rollout creates one. For
// workers, the new machine must be ready, or the victim is being deleted. Surplus new machines get
// the delete annotation first, so that no older, healthy machine is deleted.
func (r remediation) scaleDown() []Action {
	if !r.in(settling) && (len(r.newMachines) == 0 && !r.ownerRollingOut() || !r.facts.isControlPlane() && !r.ready() && !r.isDeletedFirst()) {
		return nil
	}
	var actions []Action
	unwanted := false
	for _, m := range r.newMachines {
		unwanted = unwanted || r.isSurplus(m)
		if r.isSurplus(m) && m.DeleteAnnotation == "" && (r.hasSurplus() || r.method.requesting(r)) {
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject(), Value: DeleteValue})
		}
	}
	if !unwanted && r.filling() && len(r.newMachines) > 0 && r.newMachines[0].DeleteAnnotation == "" {
		actions = append(actions, Action{Type: SetDelete, Machine: r.newMachines[0].subject(), Value: DeleteValue})
	}
	return append(actions, r.scaleBack()...)
}

// retract scales down only if the victim is gone, is being deleted, or has the delete annotation.
// Otherwise the owner could delete any of its machines. This also holds before the surge has written
// anything, because users may have set the same number of replicas.
func (raisedReplicas) retract(r remediation) []Action {
	if r.victim != nil && r.victim.DeleteAnnotation == "" && !r.victim.Deleting {
		return nil
	}
	return r.scaleDown()
}
