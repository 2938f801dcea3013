package remediator_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// settle ends all faults and checks that the desired state is reached.
func (p *player) settle() {
	p.t.Helper()
	w := p.w
	p.logf("--- the faults are over")
	p.revertUserChanges()
	p.stopChurn()
	dead := p.pickDeadMachine()
	for _, m := range w.machines {
		if m != dead {
			p.heal(m)
		}
		if m.stopTime().After(w.now.Add(time.Hour)) { // it was announced before the clock was set back
			m.Annotations = nil
		}
		m.EtcdUnreachable, m.Skip, m.Remediate = false, false, false
		if m.Request != nil {
			m.Request.Hold, m.Request.Abort = false, false
		}
	}
	if !w.quorum() {
		for _, m := range w.machines {
			p.heal(m) // a lost quorum cannot be recovered
		}
	}
	w.policy.Unreadable = ""
	w.policy.Name, w.policy.Paused, w.owner.Paused, w.cluster.Reachable, w.etcdErr, w.staleStatus = "default", nil, false, object.True, "", false
	w.defragmentHangs, w.alarms, w.owner.Refused = false, nil, ""
	if w.stacked() && !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Leader }) {
		w.elect("")
	}
	if dead != nil && (dead.Leader || len(w.machines)-deleting(w.machines) < 3) {
		w.onlyKubelets = false // a machine whose etcd cannot be asked cannot be replaced
	}
	if w.owner.Deleting || w.cluster.Deleting {
		p.deleteOwner()
		return
	}
	quiet := 0
	for range 200 {
		if len(w.machines) == 0 || w.owner.Kind == string(remediator.ControlPlane) && deleting(w.machines) == len(w.machines) && !slices.ContainsFunc(w.machines, w.canFinishDeletion) {
			return // users deleted all of them
		}
		if w.isDeadlocked() {
			return // users deleted a machine and then the learner that was to replace it
		}
		for _, m := range w.machines { // the owner waits until the recorded time has passed
			if last, ok := remediation(m.RemediationFor); ok && last.Timestamp.After(w.now) {
				w.now = last.Timestamp
				p.logf("the clock is right again")
			}
		}
		before := len(p.log)
		if did := p.releaseOrders(); did != "" {
			p.logf("somebody %s, as was advised", did)
		}
		p.round()
		w.now = w.now.Add(time.Minute)
		if before == len(p.log) && p.unsettledReason() == "" {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 3 {
			return
		}
	}
	p.fail("it does not settle: %s", p.unsettledReason())
}

// round performs one turn of each participant.
func (p *player) round() {
	p.t.Helper()
	if p.raced && p.state.Active == nil && *p.w.replicas() != p.desired {
		p.logf("people ask for %d again", p.desired)
		*p.w.replicas() = p.desired
	}
	p.turn(false)
	p.act()
	p.turn(false)
	p.progress()
	if did := p.w.check(); did != "" {
		p.logf("the MachineHealthCheck%s", did)
	}
	p.turn(false)
}

// pickDeadMachine picks a machine that stays dead or never joins, so that it must be replaced. It
// returns nil if there is none, or if it cannot be replaced.
func (p *player) pickDeadMachine() *machine {
	w := p.w
	if rapid.IntRange(0, 2).Draw(p.t, "one stays dead") > 0 || w.owner.MaxSurge == 0 && !w.policy.AllowsDeleteFirst || !p.ownerKindKnown() {
		return nil
	}
	if w.owner.Kind == string(remediator.ControlPlane) && p.desired < 3 {
		return nil
	}
	if w.owner.ExternalEtcd && (!checkExternalPairs || !w.owner.Tested || w.owner.MaxSurge == 0) {
		return nil // the owner remediates nothing
	}
	if !checkReplicaMismatch && len(w.machines) != int(p.desired) || !checkReplicaMismatch && w.anyDeleting() || w.rollout() != "" && !checkRollouts || w.owner.Relaxed != "" && (!checkNotes || p.foreignDeletion) {
		return nil
	}
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return !w.isHealthy(m) && !m.Deleting && (checkLearners || !m.Learner) })
	if i < 0 {
		return nil
	}
	m := w.machines[i]
	if !w.survivesWithout(m) || !checkSilentVoters && len(w.machines) != int(p.desired) && (!m.Etcd || w.onlyKubelets) {
		return nil
	}
	if m.Learner && w.anyDeleting() {
		return nil // a control plane removes no member while etcd has a learner, and remediates no machine while another is being deleted
	}
	m.Kubelet = false
	p.logf("%s stays dead: joined %t, etcd %t", m.Name, m.Node != "", m.Etcd)
	return m
}

// isDeadlocked reports whether deletions block each other: a control plane removes no member while
// etcd has a learner, and completes deletions one after the other. If users also delete the
// learner's machine, no action of scute helps.
func (w *world) isDeadlocked() bool {
	if w.owner.Kind != string(remediator.ControlPlane) || deleting(w.machines) < 2 {
		return false
	}
	learner := func(m *machine) bool { return m.Deleting && m.Learner && m.Node == "" }
	return slices.ContainsFunc(w.machines, learner) && !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Deleting && w.canFinishDeletion(m) })
}

// survivesWithout reports whether the control plane works without this machine when all others are
// healthy and deleted machines are gone.
func (w *world) survivesWithout(m *machine) bool {
	if w.owner.Kind != string(remediator.ControlPlane) {
		return true
	}
	if !slices.ContainsFunc(w.machines, func(other *machine) bool { return other != m && !other.Deleting && other.Node != "" }) {
		return false
	}
	if !w.stacked() {
		return true
	}
	voters, dead := len(w.orphans), len(w.orphans)
	for _, other := range w.machines {
		if other.Deleting || !other.Member || other.Learner {
			continue
		}
		voters++
		if other == m && !m.Etcd {
			dead++
		}
	}
	return voters-dead >= voters/2+1
}

// ownerKindKnown reports whether scute supports this kind of owner.
func (p *player) ownerKindKnown() bool { return p.w.owner.Kind != "OtherControlPlane" }

// releaseOrders does what scute advises an operator to do: it removes holds, aborts remediations
// that are frozen because another client set the replicas, deletes unhealthy machines that scute
// cannot replace, and makes etcd reachable if its leader cannot be asked. It returns what it did.
func (g *guard) releaseOrders() (did string) {
	a := g.state.Active
	for _, m := range g.w.machines {
		if m.Request != nil {
			m.Request.Hold = false
			m.Request.Abort = slices.ContainsFunc(g.state.InProgress(), func(a *remediator.Active) bool {
				return a.Victim.UID == m.UID && a.Frozen == "foreign-replicas"
			})
		}
		if unhealthy := g.state.Unhealthy[m.UID]; a == nil && unhealthy != nil && unhealthy.Mark.State != "" && slices.Contains([]string{"external-etcd", "older-machine-set", "surprise"}, unhealthy.Decision.Rule) && !m.Deleting && (!g.w.isHealthy(m) || g.w.hasNotice(m)) {
			did = g.w.delete(m)
		}
		if unhealthy := g.state.Unhealthy[m.UID]; unhealthy != nil && unhealthy.Decision.Rule == "leader" && g.w.onlyKubelets {
			g.w.onlyKubelets, did = false, "lets scuted reach the port of etcd"
		}
	}
	return did
}

// unsettledReason returns how the state differs from the desired one, or "".
func (g *guard) unsettledReason() string {
	w := g.w
	switch {
	case g.state.Active != nil:
		return "a remediation is in progress: " + string(g.state.Active.Step)
	case w.owner.Replicas != g.desired || w.cluster.Topology && w.cluster.TopologyReplicas != g.desired:
		return fmt.Sprintf("%d replicas are asked for, and %d are wanted", w.owner.Replicas, g.desired)
	case len(w.machines) != int(g.desired) && w.owner.Kind != "OtherControlPlane":
		return fmt.Sprintf("there are %d machines", len(w.machines))
	case checkNotes && w.owner.Relaxed != "" && !g.foreignDeletion || w.owner.Touched != "":
		return fmt.Sprintf("the owner has the annotations %q %q", w.owner.Relaxed, w.owner.Touched)
	case len(w.orphans) > 0:
		return "etcd has a member of no machine"
	case g.state.Maintenance.Active.Node != "":
		return "a member of etcd is being defragmented"
	}
	for _, m := range w.machines {
		if wrong := g.unsettledMachineReason(m); wrong != "" {
			return m.Name + " " + wrong
		}
	}
	for _, unhealthy := range g.state.Unhealthy {
		if (unhealthy.Mark.State != "" || unhealthy.EscalationStep != "") && !w.stale(w.machine(unhealthy.Name)) {
			return unhealthy.Name + " is in the state"
		}
	}
	if w.policy.Defragmentation.Enabled && w.stacked() && w.owner.Relaxed == "" && !slices.ContainsFunc(w.machines, w.stale) {
		for _, m := range w.machines {
			if (m.Database.Size-m.Database.InUse)*2 > m.Database.Size {
				return "the database of " + m.Name + " is fragmented"
			}
		}
	}
	return ""
}

func (g *guard) unsettledMachineReason(m *machine) string {
	switch w := g.w; {
	case !w.isHealthy(m):
		return "is not well"
	case w.hasNotice(m):
		return "is about to stop"
	case w.stale(m):
		return ""
	case m.UnhealthyAnnotation != "" || m.DeleteAnnotation != "" || m.Certificates != "" || m.ClonedFrom != m.Template || m.Request != nil:
		return fmt.Sprintf("has the mark %q, delete %q, certificates %q, cloned from %q, request %v", m.UnhealthyAnnotation, m.DeleteAnnotation, m.Certificates, m.ClonedFrom, m.Request)
	case w.conditionIs(m, "HealthCheckSucceeded", object.False) || w.conditionIs(m, "OwnerRemediated", object.False):
		return "has conditions of a remediation"
	}
	return ""
}

// stale reports whether a deleted MachineHealthCheck left its condition, and maybe its request, which nothing removes.
func (w *world) stale(m *machine) bool {
	return m != nil && !w.healthCheck && w.conditionIs(m, "HealthCheckSucceeded", object.False) && m.Conditions["HealthCheckSucceeded"].Reason == "UnhealthyNode"
}
