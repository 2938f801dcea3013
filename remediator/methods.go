package remediator

import (
	"cmp"
	"fmt"
	"slices"

	"scute.dev/kube/object"
)

// method represents one way to have a machine replaced. It returns the writes that request the
// replacement from the owner, or that undo the request, and makes no decisions. Its functions may
// be called in any state of the remediation.
type method interface {
	// request returns the writes that make the owner replace the machine, in the order in which
	// they must be performed.
	request(r remediation) []Action
	// retract returns the writes that undo only the part of the request that is no longer needed or
	// safe.
	retract(r remediation) []Action
	// undo returns the writes that undo the whole request, except for the victim's delete annotation.
	undo(r remediation) []Action
	// undone reports whether the owner has observed that the request is undone.
	undone(r remediation) bool
	// requesting reports whether the owner's replicas are still raised. The owner may already have
	// created a machine that scute has not observed.
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

// rolloutSurge makes the victim the only outdated machine, so that the owner's own rollout creates
// one machine and deletes the victim.
type rolloutSurge struct{ fixedReplicas }

func (rolloutSurge) request(r remediation) []Action {
	return r.surge(r.setTrigger(r.Request.TriggerValue))
}

func (rolloutSurge) retract(remediation) []Action { return nil }

// undo returns the write that restores the original value of the rollout trigger, if the trigger is
// observed on the victim. If the log does not have the trigger, ClonedFrom is only read for suspect
// machines, such as machines with the delete annotation. The delete annotation is therefore set
// before the trigger and removed after it.
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

// setTrigger returns the write that sets the rollout trigger to a value, or nil if it has that
// value. It returns nil too if another client has changed the certificate expiry since the surge
// was requested.
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

// replicaSurge raises the replicas of a control plane until a new machine exists.
type replicaSurge struct{ raisedReplicas }

func (replicaSurge) request(r remediation) []Action {
	return append(r.surge(r.scaleUp()), r.scaleDown()...)
}

func (replicaSurge) undo(r remediation) []Action {
	return r.undoScale(len(r.newMachines) == 0 && !r.in(sparing)) // a new machine may exist that was not observed yet
}

// surge returns the writes that request one more machine from a control plane. The victim's delete
// annotation always precedes the writes in start, which make the owner act.
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

// unmarkReplacement returns the write that removes the delete annotation from a replacement that
// became ready after its cancellation had started, once the victim has the annotation.
func (r remediation) unmarkReplacement() []Action {
	return actionsFor(r.facts.all(), SetDelete, func(m *Machine) bool {
		return m.UID == r.Replacement.UID && m.DeleteAnnotation == DeleteValue && r.Ready && !r.isSurplus(m) && !r.method.requesting(r) && r.victim.DeleteAnnotation != ""
	})
}

// moveLeadership returns the write that moves the leadership of etcd away from a victim with broken
// components, because the owner cannot move it then. A member that does not answer loses the
// leadership by itself.
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

// otherVoter returns an answering voter on another node for which fits returns true, or nil.
func (e *Etcd) otherVoter(node string, fits func(*Member) bool) *Member {
	return find(e.Members, func(m *Member) bool { return m.Node != node && !m.Learner && m.answering() && fits(m) })
}

// onHealthyMachine reports whether a member of etcd runs on a healthy machine that is not being
// deleted. Such a member is the best new leader: if an unhealthy machine led, the owner would have
// to move the leadership before it deletes that machine, and might be unable to.
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

// removeRelaxed returns the write that removes the annotation that relaxes the owner's preflight
// checks. The owner does not remove the annotation while its other preflight checks fail, and
// remediates no other machine while the annotation exists.
func (r remediation) removeRelaxed() []Action {
	return actionIf(r.Request.Relaxed && RelaxedFor(r.facts.Owner.Relaxed) == r.Victim.Name, r.set(SetRelaxed, ""))
}

// touch returns the write of an annotation on the owner that triggers the owner's controller,
// because the controller does not watch the infrastructure machine that has the rollout trigger. If
// needed is false, the write removes the annotation.
func (r remediation) touch(needed bool, why string) []Action {
	want := ""
	if needed && r.Request.Trigger == TriggerClonedFrom {
		want = fmt.Sprintf("%s-%d%s", r.Victim.Name, r.Request.Attempt, why)
	}
	return actionIf(r.facts.Owner.Touched != want && r.facts.isControlPlane(), r.set(Touch, want))
}

// workerSurge requests one more worker. When the new worker is ready, it sets the victim's delete annotation.
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

// undo returns the writes that restore the replicas. It first sets the delete annotation of the
// unhealthy machine in two cases: if the owner would otherwise delete a healthy machine instead of
// the new one, or if the machine is still unhealthy, no new machine was observed, and no operator
// aborted the remediation.
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

// unblockOwner returns the write that removes the owner's annotation remediation-in-progress, if
// the victim keeps that remediation from ending.
func (r remediation) unblockOwner() []Action {
	name, _ := r.facts.orphan()
	return actionIf(r.facts.stallsOwner(r.victim), Action{Type: SetRelaxed, Machine: Subject{Name: name}})
}

// reportOthers returns the writes that report to the control plane that all stranded machines
// except the one handed over are unhealthy. KubeadmControlPlane remediates no machine while it
// considers a machine without a Node to be still starting (HasHealthyMachineStillProvisioning).
func (r remediation) reportOthers(handed *Machine) []Action {
	return actionsFor(slices.Values(r.stranded), Report, func(m *Machine) bool { return m != handed && m.lastCheck().Status != object.False })
}

// retract returns the write that withdraws the request to remediate, unless the owner is already
// deleting the machine. It is called, for example, when quorum would be lost or is unknown.
func (handOver) retract(r remediation) []Action {
	return actionIf(handedOver(r.victim) && !r.victim.Deleting, r.set(Withdraw, ""))
}

// undo returns the write that withdraws the request to remediate. If the machine is no longer
// marked unhealthy, the write resets the other conditions of the remediation too.
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

// requesting reports whether the replicas are still raised. It returns false once they were
// restored, because users may set the same number later. After a merge, the replicas may be one
// less than To, because the last increase was not written, or was undone before scute observed it.
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

// undoScale returns the writes that restore the replicas. If mark is true, they set the victim's
// delete annotation first.
func (r remediation) undoScale(mark bool) []Action {
	back := r.scaleBack()
	mark = mark && len(back) > 0 && r.victim != nil && r.victim.DeleteAnnotation == ""
	return append(actionIf(mark, r.set(SetDelete, DeleteValue)), back...)
}

// isDeletedFirst reports whether the victim is being deleted and is the machine that the owner
// chooses at a scale-down. The replicas must be restored before the victim is gone. After that, the
// owner would create another machine for the raised replicas, and delete any machine when they are
// restored.
func (r remediation) isDeletedFirst() bool {
	f := r.facts
	return r.victim != nil && r.victim.Deleting && f.Owner.RollingOut == "" && (len(f.Owner.Sets) == 0 || f.shrinkingSet() == r.victim.Set)
}

// scaleDown returns the writes that restore the replicas as soon as a new machine exists or a
// rollout creates one. For workers, the new machine must also be ready, or the victim must be next
// in line for deletion (isDeletedFirst). The writes first set the delete annotation of surplus new
// machines, so that the owner deletes no healthy machine that existed before.
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

// retract returns the writes of scaleDown if the victim is gone, is being deleted, or has the
// delete annotation. Otherwise the owner could delete any of its machines. This also holds before
// the surge has written anything, because users may have set the replicas to the same number.
func (raisedReplicas) retract(r remediation) []Action {
	if r.victim != nil && r.victim.DeleteAnnotation == "" && !r.victim.Deleting {
		return nil
	}
	return r.scaleDown()
}
