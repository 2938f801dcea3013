package remediator

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/kube/object"
)

// method is one way to have a machine replaced: which writes ask its owner for it, and which take that back. A method decides
// nothing; it may be asked at any time, in any state.
type method interface {
	// ask is what makes the owner replace the machine, in its order.
	ask(r remediation) []Action
	// hold takes back what is more than needed, and asks for nothing.
	hold(r remediation) []Action
	// undo takes back what was asked for, all but the victim's mark.
	undo(r remediation) []Action
	// undone says that it is taken back, and that the owner knows.
	undone(r remediation) bool
	// asking says that the owner is still asked for more machines, and may have created one that was not observed yet.
	asking(r remediation) bool
	// wanted is how many machines people want.
	wanted(r remediation) int
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

// scales says that the method asks by replicas.
func (r remediation) scales() bool { return r.Request.Method == Surge }

// rolloutSurge makes the victim alone outdated. The owner's own rollout makes one machine, and deletes the victim.
type rolloutSurge struct{ steady }

func (rolloutSurge) ask(r remediation) []Action {
	return r.surge(r.pull(r.Request.TriggerValue))
}

func (rolloutSurge) hold(remediation) []Action { return nil }

// undo gives the trigger its value from before, where it is seen to be pulled. What a machine was cloned from is looked up only
// while something is wrong with it: the delete mark comes before the trigger and goes after it, so that it is looked up until then.
func (rolloutSurge) undo(r remediation) []Action {
	if !r.pulled() {
		return nil
	}
	return r.pull(r.Request.Original)
}

func (rolloutSurge) undone(r remediation) bool { return !r.pulled() }

// pulled says that the trigger on the victim is not back, as its owner sees it.
func (r remediation) pulled() bool {
	switch {
	case r.victim == nil:
		return false
	case r.Request.Trigger == TriggerCertificates:
		return r.Request.TriggerValue != "" && (r.victim.Certificates == r.Request.TriggerValue || r.victim.CertificatesStatus == r.Request.TriggerValue)
	default:
		return r.victim.ClonedFrom == r.Request.TriggerValue
	}
}

// pull sets the trigger to a value. What somebody else has written there since is left alone.
func (r remediation) pull(value string) []Action {
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

// replicaSurge asks a control plane for more replicas until a new machine exists.
type replicaSurge struct{ scaling }

func (replicaSurge) ask(r remediation) []Action {
	return append(r.surge(r.scaleUp()), r.scaleDown()...)
}

func (replicaSurge) hold(r remediation) []Action { return r.scaleDownMarked() }

// surge is how a control plane is asked for one more machine. The mark on the victim always comes first, then what makes the owner
// act.
func (r remediation) surge(start []Action) []Action {
	actions := r.leadAway()
	if r.victim.DeleteMark == "" {
		actions = append(actions, r.set(SetDelete, DeleteValue))
	}
	actions = slices.Concat(actions, r.counted(), start)
	waiting := r.Replacement.UID == "" && len(r.newMachines) == 0
	if waiting && r.Request.Relaxed {
		actions = append(actions, r.relaxOn()...)
	}
	if !waiting {
		actions = append(actions, r.relaxOff()...)
	}
	return append(actions, r.touch(waiting, "")...)
}

// counted takes the mark off a replacement that was given up, and became ready after all. The victim has its own by then.
func (r remediation) counted() []Action {
	m := r.facts.machine(r.Replacement)
	if m == nil || m.DeleteMark != DeleteValue || !r.Ready || r.extra(m) || r.method.asking(r) || r.victim.DeleteMark == "" {
		return nil
	}
	return []Action{{Type: SetDelete, Machine: m.subject()}}
}

// leadAway moves etcd's leadership off a victim whose owner cannot: its components are not well. A member that does not answer
// loses it by itself.
func (r remediation) leadAway() []Action {
	member := r.facts.Etcd.member(r.victim)
	if !member.answering() || !member.Leader || len(r.victim.broken(r.facts.Owner.ExternalEtcd)) == 0 {
		return nil
	}
	var to *Member
	for i := range r.facts.Etcd.Members {
		other := &r.facts.Etcd.Members[i]
		if other.Node == member.Node || other.Learner || !other.answering() {
			continue
		}
		if r.facts.stays(other) {
			return []Action{r.set(MoveLeadership, other.Node)}
		}
		if to == nil {
			to = other
		}
	}
	if to == nil {
		return nil
	}
	return []Action{r.set(MoveLeadership, to.Node)}
}

// stays says that a member of etcd is on a machine that is well, and that nobody deletes. Leadership on another one would have to be
// moved again before that machine goes, and its owner may be unable to.
func (f *Facts) stays(member *Member) bool {
	m := f.claimed(*member)
	return m != nil && !m.Deleting && len(m.broken(f.Owner.ExternalEtcd)) == 0
}

func (r remediation) relaxOn() []Action {
	if r.facts.Owner.Relaxed != "" {
		return nil
	}
	at := r.StartedAt
	for i := range r.facts.Machines { // the owner takes the note off when a machine is younger: the clock may have been set back
		if created := r.facts.Machines[i].Created; created.After(at) {
			at = created
		}
	}
	n := note{Machine: r.Victim.Name, Timestamp: at.UTC().Format(time.RFC3339)}
	if before, ok := noteOf(r.victim.RemediationFor); ok {
		n.RetryCount = before.RetryCount // a chain of retries continues to count
	}
	return []Action{r.set(SetRelaxed, toJSON(n))}
}

// relaxOff takes ours off: the owner leaves its note when it refuses, and would remediate nothing more.
func (r remediation) relaxOff() []Action {
	if n, ok := noteOf(r.facts.Owner.Relaxed); !ok || !r.Request.Relaxed || n.Machine != r.Victim.Name {
		return nil
	}
	return []Action{r.set(SetRelaxed, "")}
}

// touch makes the owner look at what it does not watch: a trigger on another object.
func (r remediation) touch(needed bool, why string) []Action {
	want := ""
	if needed && r.Request.Trigger == TriggerClonedFrom {
		want = fmt.Sprintf("%s-%d%s", r.Victim.Name, r.Request.Attempt, why)
	}
	if r.facts.Owner.Touched == want || !r.facts.isControlPlane() {
		return nil
	}
	return []Action{r.set(Touch, want)}
}

// workerSurge asks for one more worker, waits until it is ready, and marks the victim as the one to go.
type workerSurge struct{ scaling }

func (workerSurge) ask(r remediation) []Action {
	actions := r.scaleUp()
	if r.ready() && r.victim.DeleteMark == "" && r.tooMany() {
		actions = append(actions, r.set(SetDelete, DeleteValue))
	}
	return slices.Concat(actions, r.counted(), r.scaleDown())
}

// ready says that the replacement is ready now. It may have been, and have failed since.
func (r remediation) ready() bool {
	m := r.facts.machine(r.Replacement)
	return r.Ready && m != nil && r.facts.ready(m)
}

// undo makes the owner delete the unhealthy machine where it would otherwise delete an older, healthy machine instead
// of the new one; and, while the machine is unhealthy, where a new machine may exist that was not observed yet. A
// machine whose replacement an operator aborted is marked only where an older one would go.
func (workerSurge) undo(r remediation) []Action {
	back := r.scaleBack()
	if len(back) == 0 || r.victim == nil || r.victim.DeleteMark != "" {
		return back
	}
	unhealthy := r.unhealthy != nil && r.unhealthy.Mark != nil && r.unhealthy.Mark.State == Unhealthy
	if r.committed() || unhealthy && len(r.newMachines) == 0 && r.Cause != Aborted {
		return append([]Action{r.set(SetDelete, DeleteValue)}, back...)
	}
	return back
}

func (workerSurge) hold(r remediation) []Action { return r.scaleDownMarked() }

// handOver has the owner remediate the machine itself, which deletes it first.
type handOver struct{ steady }

func (handOver) ask(r remediation) []Action {
	if r.victim.Deleting || handedOver(r.victim) || !r.facts.removed(r.victim).none() {
		return nil
	}
	return slices.Concat(r.leadAway(), r.report(r.victim), r.unstall(), []Action{r.set(HandOver, "")})
}

// unstall takes off the owner's note of a remediation that it cannot end because of the victim.
func (r remediation) unstall() []Action {
	if !r.facts.stalls(r.victim) {
		return nil
	}
	name, _ := r.facts.orphan()
	return []Action{{Type: SetRelaxed, Machine: Subject{Name: name}}}
}

// report tells a control plane which machines never joined, other than the one that it is handed. It remediates no machine while it
// takes one of these for a machine that is still starting (KubeadmControlPlane, HasHealthyMachineStillProvisioning).
func (r remediation) report(handed *Machine) []Action {
	return on(slices.Values(r.stranded), Report, func(m *Machine) bool { return m != handed && m.lastCheck().Status != object.False })
}

// hold withdraws the hand-over while the owner has not begun to act on it: quorum would be lost with the machine, or
// that is unknown.
func (handOver) hold(r remediation) []Action {
	if !handedOver(r.victim) || r.victim.Deleting {
		return nil
	}
	return []Action{r.set(Withdraw, "")}
}

// undo leaves a machine that is still unhealthy as its health check left it.
func (h handOver) undo(r remediation) []Action {
	switch {
	case !handedOver(r.victim):
		return nil
	case r.unhealthy != nil && r.unhealthy.Mark != nil:
		return h.hold(r)
	default:
		return []Action{r.set(ClearConditions, "")}
	}
}

func (handOver) undone(r remediation) bool { return !handedOver(r.victim) }

// steady is of methods that leave replicas alone.
type steady struct{}

func (steady) asking(remediation) bool  { return false }
func (steady) wanted(r remediation) int { return int(r.facts.Owner.Replicas) }

// scaling is of methods that ask by replicas.
type scaling struct{}

// asking: after replicas were restored, no more are requested. If users set the same number later, it is their request.
// One that was merged may ask for one less: the last of what several asked for was not written, or is taken back and was not seen.
func (scaling) asking(r remediation) bool {
	one := r.Merged && r.replicas == r.Request.To-1 && r.replicas > r.Request.From
	return r.Scale != ScaleBack && (one || r.replicas == r.Request.To)
}

func (s scaling) wanted(r remediation) int {
	if s.asking(r) {
		return int(r.Request.From)
	}
	return int(r.replicas)
}

func (scaling) undo(r remediation) []Action {
	back := r.scaleBack()
	if r.facts.isControlPlane() && len(back) > 0 && r.victim != nil && r.victim.DeleteMark == "" && len(r.newMachines) == 0 && !r.in(Sparing) {
		return append([]Action{r.set(SetDelete, DeleteValue)}, back...) // a new machine may exist that was not observed yet
	}
	return back
}

func (s scaling) undone(r remediation) bool {
	return !s.asking(r) && r.facts.Owner.Replicas == r.replicas && r.facts.Owner.Observed
}

func (r remediation) scaleUp() []Action {
	if r.Scale != ScaleUnseen || len(r.newMachines) > 0 || r.rolling() || r.replicas == r.Request.To {
		return nil
	}
	return []Action{{Type: Scale, Machine: r.Victim, Where: r.Request.Where, Entry: r.Request.Entry, Replicas: r.Request.To, Expect: r.Request.From}}
}

// leavesFirst says that the victim is being deleted, and is the one that goes with fewer replicas. When it is gone, the owner would make
// another machine for the replicas that were raised, and delete any for those that are restored.
func (r remediation) leavesFirst() bool {
	f := r.facts
	return r.victim != nil && r.victim.Deleting && f.Owner.RollingOut == "" && (len(f.Owner.Sets) == 0 || f.gives() == r.victim.Set)
}

// scaleDown restores replicas as soon as a new machine exists (for workers: is ready, or the victim is being deleted), or a rollout
// creates one.
// Surplus new machines are marked before, so that they are deleted and no older, healthy machine is.
func (r remediation) scaleDown() []Action {
	if !r.in(Settling) && (len(r.newMachines) == 0 && !r.rolling() || !r.facts.isControlPlane() && !r.ready() && !r.leavesFirst()) {
		return nil
	}
	var actions []Action
	unwanted := false
	for _, m := range r.newMachines {
		unwanted = unwanted || r.extra(m)
		if r.extra(m) && m.DeleteMark == "" && (r.surplus() || r.method.asking(r)) {
			actions = append(actions, Action{Type: SetDelete, Machine: m.subject(), Value: DeleteValue})
		}
	}
	if !unwanted && r.filling() && len(r.newMachines) > 0 && r.newMachines[0].DeleteMark == "" {
		actions = append(actions, Action{Type: SetDelete, Machine: r.newMachines[0].subject(), Value: DeleteValue})
	}
	return append(actions, r.scaleBack()...)
}

// scaleDownMarked scales down unless the victim has no mark: the owner would delete any of its machines. People may ask for as many
// machines as a surge that has written nothing yet.
func (r remediation) scaleDownMarked() []Action {
	if r.victim != nil && r.victim.DeleteMark == "" && !r.victim.Deleting {
		return nil
	}
	return r.scaleDown()
}

func (r remediation) scaleBack() []Action {
	if !r.method.asking(r) {
		return nil
	}
	return []Action{{Type: Scale, Machine: r.Victim, Where: r.Request.Where, Entry: r.Request.Entry, Replicas: r.Request.From, Expect: r.replicas}}
}
