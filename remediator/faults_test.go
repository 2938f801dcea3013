package remediator_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// applyChange performs random events.
func (p *player) applyChange() {
	p.t.Helper()
	w := p.w
	passes := time.Duration(rapid.SampledFrom([]int{1, 1, 1, 10, 10, 30, 60, 301, 301, 1300}).Draw(p.t, "seconds")) * time.Second
	if w.chosen != nil && w.now.Add(passes).After(w.chosenAt.Add(w.slow)) {
		p.act()
	}
	w.now = w.now.Add(passes)
	for range rapid.IntRange(0, 3).Draw(p.t, "things") {
		if len(w.machines) == 0 {
			p.act() // a new control plane creates its first machine
		}
		if len(w.machines) == 0 {
			return
		}
		m := rapid.SampledFrom(w.machines).Draw(p.t, "machine")
		switch n := rapid.IntRange(0, 131).Draw(p.t, "thing"); {
		case n < 30:
			p.act()
		case n < 50:
			p.progress()
		case n < 67:
			p.breakMachine(m)
		case n < 78:
			p.heal(m)
		case n < 81:
			p.failJoin(m)
		case n < 83 && !m.Deleting:
			p.faults++
			p.logf("somebody %s", w.delete(m))
		case n < 89 && m.Request != nil:
			p.operator(m)
		case n < 100:
			p.applyOrder(m)
		case n < 104:
			p.hideFacts()
		case n < 107:
			p.scale()
		case n < 109 && rapid.IntRange(0, 3).Draw(p.t, "rollout") == 0:
			p.rollOut(m)
		case n < 112 && checkLateStatus:
			w.staleStatus = !w.staleStatus && p.oneInThree("behind")
			p.logf("the Machine controller is behind: %t", w.staleStatus)
		case n < 113 && checkStaleHealthChecks:
			w.healthCheck = !w.healthCheck
			p.logf("a MachineHealthCheck is there: %t", w.healthCheck)
		case n < 119:
			p.logf("the MachineHealthCheck%s", w.check())
		case n > 128:
		case n > 122:
			p.fragment(m)
		default:
			p.announce(m)
		}
		switch rapid.IntRange(0, 5).Draw(p.t, "people") {
		case 0:
			p.applyUserChange(m)
		case 1:
			p.churn(m)
		}
	}
	p.stopNoticedMachines()
}

// applyUserChange performs random actions of users: they pause, move, hook and mark objects, and change policies.
func (p *player) applyUserChange(m *machine) {
	w := p.w
	minutes := func(label string, of ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(of).Draw(p.t, label)) * time.Minute
	}
	switch rapid.IntRange(0, 13).Draw(p.t, "what people do") {
	case 13:
		if w.owner.Refused = ""; p.oneInThree("refused") {
			w.owner.Refused = "exceeded quota"
		}
	case 12:
		noted := func(m *machine) bool { return m.RemediationFor != "" }
		if w.owner.Relaxed != "" || slices.ContainsFunc(w.machines, noted) {
			break // the owner would wait until the recorded times have passed
		}
		back := minutes("set back", 2, 20, 300)
		w.now = w.now.Add(-back)
		if w.etcdRequests.Last.After(w.now) {
			w.etcdRequests.Last = w.now // as the runner does
		}
		if w.blindSince.After(w.now) {
			w.blindSince = w.now
		}
		p.logf("the clock is set back by %s", back)
	case 0:
		w.cluster.Paused = p.oneInThree("cluster paused")
	case 1:
		if w.move = ""; p.oneInThree("moved") {
			w.move = "move-1"
		}
	case 2:
		m.Paused = p.oneInThree("machine paused")
	case 3:
		if m.Hooks = nil; p.oneInThree("hook") {
			m.Hooks = []string{"pre-drain/backup"}
		}
	case 4:
		w.policy.Hold = minutes("hold", 0, 0, 10)
	case 5:
		w.policy.Timeouts = remediator.Timeouts{ScaleUp: minutes("scale up", 1, 5, 30), Ready: minutes("ready", 1, 20), Removal: minutes("removal", 0, 2, 30)}
	case 6:
		for _, method := range methods() {
			w.policy.Methods[method] = rapid.IntRange(0, 3).Draw(p.t, "method") > 0
		}
	case 7:
		w.policy.AllowsDeleteFirst = rapid.Bool().Draw(p.t, "accepts")
		w.policy.GuardsMachines = rapid.Bool().Draw(p.t, "guards")
	case 8:
		if w.fleet.Limits.Paused = nil; p.oneInThree("fleet paused") {
			w.fleet.Limits.Paused = []string{"a freeze of all"}
		}
	case 9:
		if w.policy.Removal = (remediator.Removal{Drain: minutes("drain", 0, 1)}); m.Deleting {
			m.Draining = w.now
		}
	case 10:
		if w.policy.Escalation = nil; p.oneInThree("escalation") {
			w.policy.Escalation = []remediator.EscalationStep{{Name: "reboot", Timeout: 2 * time.Minute, APIVersion: "example.com/v1", Kind: "Cure"}}
		}
	case 11:
		switch m.DeleteAnnotation {
		case "":
			m.DeleteAnnotation = foreignDeleteValue
		case foreignDeleteValue:
			p.unmark(m)
		}
	}
	p.logf("people: cluster paused %t, move %q, hold %s, timeouts %v, methods %v, accepts %t, fleet paused %v, removal %v, escalation %v; %s: paused %t, hooks %v, delete mark %q",
		w.cluster.Paused, w.move, w.policy.Hold, w.policy.Timeouts, w.policy.Methods, w.policy.AllowsDeleteFirst, w.fleet.Limits.Paused, w.policy.Removal, w.policy.Escalation, m.Name, m.Paused, m.Hooks, m.DeleteAnnotation)
}

// foreignDeleteValue is a delete annotation that a user set. The owner deletes that machine first when it scales in.
const foreignDeleteValue = "by hand"

// methods returns all methods that a policy may allow.
func methods() []v1alpha1.RepairMethod {
	return []v1alpha1.RepairMethod{v1alpha1.MethodRolloutSurge, v1alpha1.MethodSurge, v1alpha1.MethodRelaxedSurge, v1alpha1.MethodOwnerRemediation}
}

// revertUserChanges reverts everything that users did, except the replicas that they requested.
func (p *player) revertUserChanges() {
	w := p.w
	w.cluster.Paused, w.move, w.fleet.Limits.Paused = false, "", nil
	w.policy.Hold, w.policy.Escalation, w.policy.Timeouts = 0, nil, newWorld(w.now).policy.Timeouts
	for _, method := range methods() {
		w.policy.Methods[method] = true
	}
	for _, m := range w.machines {
		m.Paused, m.Hooks = false, nil
		p.unmark(m)
	}
}

// unmark removes a user's delete annotation. If the owner has too many machines at that moment, it deletes another one,
// which scute cannot prevent.
func (p *player) unmark(m *machine) {
	if m.DeleteAnnotation != foreignDeleteValue {
		return
	}
	m.DeleteAnnotation = ""
	if len(p.w.machines)-deleting(p.w.machines) > int(*p.w.replicas()) {
		p.unmarked++
	}
}

// fragment fragments or fills a database. A member that is being defragmented may not recover.
func (p *player) fragment(m *machine) {
	w := p.w
	if !w.policy.Defragmentation.Enabled || !m.Member {
		return
	}
	switch rapid.IntRange(0, 4).Draw(p.t, "database") {
	case 0:
		w.defragmentHangs = !w.defragmentHangs && p.oneInThree("stalls")
	case 1:
		w.alarms = nil
		if !p.oneInThree("disarmed by people") {
			w.alarms = []string{"NOSPACE of " + m.Node}
			m.Database = remediator.Database{Size: 1900 << 20, InUse: 300 << 20, Quota: 2 << 30}
		}
	default:
		m.Database = remediator.Database{Size: 400 << 20, InUse: int64(rapid.SampledFrom([]int{50, 200, 390}).Draw(p.t, "in use")) << 20, Quota: 2 << 30}
	}
	for _, m := range w.machines {
		if m.Member && m.Database.Size == 0 {
			m.Database = remediator.Database{Size: 60 << 20, InUse: 50 << 20, Quota: 2 << 30}
		}
	}
	p.logf("the database of %s: %s, stalls %t, alarms %v", m.Name, m.Database, w.defragmentHangs, w.alarms)
}

// announce announces that a machine is about to stop, or withdraws the announcement.
func (p *player) announce(m *machine) {
	if len(p.w.policy.Checks.Notices) == 0 {
		return
	}
	at := p.w.now.Add(time.Duration(rapid.SampledFrom([]int{5, 15, 30}).Draw(p.t, "minutes")) * time.Minute)
	if m.Annotations != nil && p.oneInThree("taken back") {
		m.Annotations = nil
	} else {
		m.Annotations = map[string]string{maintenance: at.Format(time.RFC3339)}
	}
	p.logf("%s is about to stop: %v", m.Name, m.Annotations)
}

// stopNoticedMachines stops the machines whose announced time has come.
func (p *player) stopNoticedMachines() {
	for _, m := range p.w.machines {
		if at := m.stopTime(); m.Node != "" && m.Kubelet && !at.IsZero() && !p.w.now.Before(at) {
			p.faults++
			m.Kubelet, m.Etcd = false, false
			if m.Leader {
				p.w.elect("")
			}
			p.logf("%s stops", m.Name)
		}
	}
}

func (p *player) oneInThree(label string) bool { return rapid.IntRange(0, 2).Draw(p.t, label) == 0 }

// breakMachine breaks a machine, usually only while a majority stays healthy.
func (p *player) breakMachine(m *machine) {
	unwell := 0
	for _, m := range p.w.machines {
		if !p.w.isHealthy(m) {
			unwell++
		}
	}
	if unwell > 0 && (unwell+1)*2 > len(p.w.machines) && rapid.IntRange(0, 5).Draw(p.t, "majority") > 0 {
		return
	}
	p.faults++
	switch rapid.IntRange(0, 7).Draw(p.t, "fault") {
	case 0, 1:
		m.Kubelet = false
	case 2:
		m.Pods = false
	case 3, 4:
		m.Pressed = true
	case 5:
		m.Etcd, m.Cut = false, p.w.stacked() && p.oneInThree("cut off")
		if m.Leader {
			p.w.elect("")
		}
	case 6:
		m.EtcdUnreachable = true
	case 7:
		m.FailsForeignCheck = p.w.healthCheck && m.Node != ""
	}
	p.logf("%s: kubelet %t, components %t, etcd %t, cut off %t, askable %t, pressed %t, ill %t", m.Name, m.Kubelet, m.Pods, m.Etcd, m.Cut, !m.EtcdUnreachable, m.Pressed, m.FailsForeignCheck)
}

func (p *player) heal(m *machine) {
	m.Pressed, m.EtcdUnreachable, m.Cut, m.NeverJoins, m.FailsForeignCheck, m.Updating = false, false, false, false, false, false
	m.Annotations = nil
	if m.Node != "" {
		m.Kubelet, m.Pods, m.Etcd = true, true, m.Member
	}
	p.logf("%s is well", m.Name)
}

// failJoin keeps a starting machine from ever joining. It may already be a learner of etcd.
func (p *player) failJoin(m *machine) {
	m.NeverJoins = m.Node == ""
	if m.NeverJoins && p.w.stacked() && !m.Member && !p.w.learner(m) && rapid.Bool().Draw(p.t, "learner") {
		m.Member, m.Learner, m.Etcd = true, true, rapid.Bool().Draw(p.t, "started")
	}
	p.logf("%s never joins: %t, learner: %t", m.Name, m.NeverJoins, m.Learner)
}

// progress performs what happens without scute: machines join, deleted machines disappear, and the controller of
// requests removes the finalizer of a deleted request when the remediation of its machine has ended.
func (p *player) progress() {
	for _, m := range slices.Clone(p.w.machines) {
		if u := p.state.Unhealthy[m.UID]; m.Request != nil && m.Request.Deleting && (u == nil || u.Mark.State == "") && p.state.Active == nil {
			m.Request = nil
			p.logf("the request of %s is gone", m.Name)
		}
		switch {
		case m.Deleting && p.w.finishDeletion(m):
			p.logf("%s is gone", m.Name)
		case m.Node == "" && p.w.join(m):
			p.logf("%s joins", m.Name)
		}
	}
}

func (p *player) operator(m *machine) {
	switch rapid.IntRange(0, 3).Draw(p.t, "word") {
	case 0:
		m.Request.Hold, m.Request.HoldUntil = true, time.Time{}
		if rapid.Bool().Draw(p.t, "until") {
			m.Request.HoldUntil = p.w.now.Add(5 * time.Minute)
		}
	case 1:
		m.Request.Hold = false
	case 2:
		m.Request.Abort = true
	case 3:
		m.Request.Abort = false
	}
	p.logf("an operator on %s: %+v", m.Name, *m.Request)
}

// applyOrder performs random writes of users to machines, owners and policies.
func (p *player) applyOrder(m *machine) {
	w := p.w
	switch n := rapid.IntRange(0, 9).Draw(p.t, "order"); {
	case n < 3:
		m.Skip = p.oneInThree("skip")
		p.logf("skip %s: %t", m.Name, m.Skip)
	case n < 4:
		m.Remediate = !m.Remediate && p.oneInThree("remediate")
		p.logf("remediate %s: %t", m.Name, m.Remediate)
	case n < 5:
		if w.policy.Paused = nil; p.oneInThree("paused") {
			w.policy.Paused = []string{"a freeze"}
		}
		p.logf("policy paused %v", w.policy.Paused)
	case n < 6:
		w.owner.Paused = p.oneInThree("paused")
		p.logf("owner paused: %t", w.owner.Paused)
	case n < 8:
		p.revert()
	default:
		w.policy.Name, w.policy.Unreadable = "default", ""
		if p.oneInThree("unselected") {
			w.policy.Name = ""
		} else if p.oneInThree("unreadable") {
			w.policy.Unreadable = "spec.hold is a list"
		}
		p.logf("policy %q, unreadable: %q", w.policy.Name, w.policy.Unreadable)
	}
}

// hideFacts makes the workload cluster or its etcd unreachable for scute.
func (p *player) hideFacts() {
	w := p.w
	switch rapid.IntRange(0, 3).Draw(p.t, "hide") {
	case 0, 1:
		if w.cluster.Reachable = object.True; p.oneInThree("out of reach") {
			w.cluster.Reachable = object.False
		}
		p.logf("reach: %s", w.cluster.Reachable)
	case 2:
		if w.etcdErr = ""; p.oneInThree("etcd error") {
			w.etcdErr = "no endpoint answers"
		}
		p.logf("etcd error: %q", w.etcdErr)
	case 3:
		w.onlyKubelets = !w.onlyKubelets
		p.logf("etcd is asked through kubelets alone: %t", w.onlyKubelets)
	}
}

// replicas returns the field in which users set the number of machines.
func (w *world) replicas() *int32 {
	if w.cluster.Topology {
		return &w.cluster.TopologyReplicas
	}
	return &w.owner.Replicas
}

// revert resets the replicas to the desired number, as a GitOps tool does.
func (p *player) revert() {
	if replicas := p.w.replicas(); *replicas != p.desired {
		p.reverted = true
		*replicas = p.desired
		p.logf("replicas are put back to %d", p.desired)
	}
}

// scale changes the desired number of machines.
func (p *player) scale() {
	w := p.w
	by := int32(1)
	if w.stacked() {
		by = 2
	}
	if rapid.Bool().Draw(p.t, "down") {
		by = -by
	}
	if p.desired+by < 1 || p.desired+by > 9 || w.owner.Kind == "OtherControlPlane" || p.state.Active != nil && !checkMidwayScaling {
		return
	}
	p.scaleBy(by)
	p.logf("people want %d machines", p.desired)
}

// rollOut starts a rollout of all machines, or an update in place of one machine, which may never end.
func (p *player) rollOut(m *machine) {
	w := p.w
	if w.owner.Kind == string(remediator.ControlPlane) && m.Node != "" && !m.Deleting && rapid.Bool().Draw(p.t, "in place") {
		m.Updating = !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Updating })
		p.logf("%s is updated in place: %t", m.Name, m.Updating)
		return
	}
	w.target += "+"
	p.logf("a rollout to %s", w.target)
}
