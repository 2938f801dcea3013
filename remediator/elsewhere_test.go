package remediator_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"scute.dev/remediator"
)

// TestAnotherLog checks that an owner settles after another log took it over in the middle of a remediation: either it
// was deleted and recreated under the same name while its machines stayed, or clusterctl moved its Cluster to another
// management cluster. The new log finds annotations that it did not write.
func TestAnotherLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer(t, anyWorld(t, startTime()))
		for range rapid.IntRange(1, 40).Draw(t, "turns before") {
			p.applyChange()
			p.turn(true)
		}
		if !p.canSwitchLog() {
			return
		}
		if rapid.Bool().Draw(t, "moved") {
			p.moveCluster()
		} else {
			p.recreateOwner()
		}
		for range rapid.IntRange(0, 20).Draw(t, "turns after") {
			p.applyChange()
			p.turn(true)
		}
		p.settle()
	})
}

// canSwitchLog reports whether no deletion is in progress, which the other log could not know of.
func (p *player) canSwitchLog() bool {
	w := p.w
	if w.cluster.Topology && w.owner.Kind == string(remediator.Set) {
		return false // no topology has a MachineSet
	}
	return p.ownerKindKnown() && !w.owner.Deleting && !w.cluster.Deleting && w.move == "" && len(w.machines) > 0 &&
		!slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Deleting })
}

// recreateOwner deletes the owner without its machines, and creates an owner of the same name that adopts them.
func (p *player) recreateOwner() {
	w := p.w
	p.logf("--- the owner is deleted without its machines")
	w.cluster.Paused, w.owner.Paused = false, false // deleted objects are not paused
	p.endLog()
	w.owner.Relaxed, w.owner.Touched = "", ""
	w.owner.Replicas = p.desired
	if w.owner.Kind == string(remediator.ControlPlane) { // a surge may have created a machine that was not marked yet
		p.excess = max(p.excess, w.tooMany(p.desired))
	} else { // a new worker is ready before the delete annotation is on the worker that it replaces
		p.excess += len(w.machines)
	}
	p.beginLog()
}

// moveCluster performs a clusterctl move: it pauses the Cluster, recreates all objects at the
// target with their annotations, their requested replicas, and no status, and deletes them at the
// source.
func (p *player) moveCluster() {
	w := p.w
	p.logf("--- clusterctl moves the cluster")
	w.cluster.Paused = true
	p.turn(false)
	w.cluster.Found = false
	p.endLog()
	w.cluster.Found, w.cluster.Paused = true, false
	p.desired = *w.replicas()
	for _, m := range w.machines {
		m.UID, m.Created = m.UID+types.UID("-moved"), w.now.Truncate(time.Second)
		m.Conditions, m.Request, m.StepObjects, m.FailedSteps, m.CertificatesStatus = make(map[string]remediator.Condition), nil, nil, nil, ""
	}
	p.beginLog()
}

// endLog ends the part of the old log: the owner is gone and controls no machines.
func (p *player) endLog() {
	w := p.w
	machines, excess := w.machines, p.excess
	w.machines, w.owner.Found = nil, false
	for range 3 {
		p.turn(false)
	}
	if p.state.Active != nil {
		p.fail("the owner is gone, and %s is in progress", p.state.Active.Victim.Name)
	}
	w.machines, w.owner.Found, p.excess = machines, true, excess
}

// beginLog starts another log for the owner.
func (p *player) beginLog() {
	w := p.w
	w.owner.UID += "-again"
	w.owner.Observed = false
	p.guard = guard{w: w, desired: p.desired, excess: p.excess, unmarked: p.unmarked, reverted: p.reverted, raced: p.raced, foreignDeletion: p.foreignDeletion || w.owner.Relaxed != "", faults: p.faults, faultsAtStart: -1}
	for _, m := range w.machines {
		p.spare += boolCount(m.DeleteAnnotation == remediator.DeleteValue)
		p.unmarked += boolCount(m.Certificates != "" || m.ClonedFrom != m.Template)
	}
	p.log = nil
	p.logf("--- another log has it")
	p.store(remediator.Registered{Owner: w.owner.Owner}, remediator.Claimed{Holder: "other"})
	p.turn(false)
	p.faultsAtTakeover = p.faults
}
