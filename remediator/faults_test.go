package remediator_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// happen performs random events.
func (p *player) happen() {
	p.t.Helper()
	w := p.w
	passes := time.Duration(rapid.SampledFrom([]int{1, 1, 1, 10, 10, 30, 60, 301, 301, 1300}).Draw(p.t, "seconds")) * time.Second
	if w.meant != nil && w.now.Add(passes).After(w.meantAt.Add(w.slow)) {
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
			p.hurt(m)
		case n < 78:
			p.heal(m)
		case n < 81:
			p.stumble(m)
		case n < 83 && !m.Deleting:
			p.faults++
			p.tell("somebody %s", w.delete(m))
		case n < 89 && m.Request != nil:
			p.operator(m)
		case n < 100:
			p.order(m)
		case n < 104:
			p.hide()
		case n < 107:
			p.scale()
		case n < 109 && rapid.IntRange(0, 3).Draw(p.t, "rollout") == 0:
			p.rollOut(m)
		case n < 112 && lateStatus:
			w.behind = !w.behind && p.seldom("behind")
			p.tell("the Machine controller is behind: %t", w.behind)
		case n < 113 && staleOpinions:
			w.healthCheck = !w.healthCheck
			p.tell("a MachineHealthCheck is there: %t", w.healthCheck)
		case n < 119:
			p.tell("the MachineHealthCheck%s", w.check())
		case n > 128:
		case n > 122:
			p.fragment(m)
		default:
			p.announce(m)
		}
		switch rapid.IntRange(0, 5).Draw(p.t, "people") {
		case 0:
			p.people(m)
		case 1:
			p.churn(m)
		}
	}
	p.stop()
}

// people performs random actions of users: they pause, move, hook and mark objects, and change policies.
func (p *player) people(m *machine) {
	w := p.w
	minutes := func(label string, of ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(of).Draw(p.t, label)) * time.Minute
	}
	switch rapid.IntRange(0, 13).Draw(p.t, "what people do") {
	case 13:
		if w.owner.Refused = ""; p.seldom("refused") {
			w.owner.Refused = "exceeded quota"
		}
	case 12:
		noted := func(m *machine) bool { return m.RemediationFor != "" }
		if w.owner.Relaxed != "" || slices.ContainsFunc(w.machines, noted) {
			break // the owner would wait until the recorded times have passed
		}
		back := minutes("set back", 2, 20, 300)
		w.now = w.now.Add(-back)
		if w.asked.Last.After(w.now) {
			w.asked.Last = w.now // as the runner does
		}
		if w.blindSince.After(w.now) {
			w.blindSince = w.now
		}
		p.tell("the clock is set back by %s", back)
	case 0:
		w.cluster.Paused = p.seldom("cluster paused")
	case 1:
		if w.move = ""; p.seldom("moved") {
			w.move = "move-1"
		}
	case 2:
		m.Paused = p.seldom("machine paused")
	case 3:
		if m.Hooks = nil; p.seldom("hook") {
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
		w.policy.Accepts = rapid.Bool().Draw(p.t, "accepts")
		w.policy.Guards = rapid.Bool().Draw(p.t, "guards")
	case 8:
		if w.fleet.Limits.Paused = nil; p.seldom("fleet paused") {
			w.fleet.Limits.Paused = []string{"a freeze of all"}
		}
	case 9:
		if w.policy.Removal = (remediator.Removal{Drain: minutes("drain", 0, 1)}); m.Deleting {
			m.Draining = w.now
		}
	case 10:
		if w.policy.Escalation = nil; p.seldom("escalation") {
			w.policy.Escalation = []remediator.EscalationStep{{Name: "reboot", Timeout: 2 * time.Minute, APIVersion: "example.com/v1", Kind: "Cure"}}
		}
	case 11:
		switch m.DeleteMark {
		case "":
			m.DeleteMark = byHand
		case byHand:
			p.unmark(m)
		}
	}
	p.tell("people: cluster paused %t, move %q, hold %s, timeouts %v, methods %v, accepts %t, fleet paused %v, removal %v, escalation %v; %s: paused %t, hooks %v, delete mark %q",
		w.cluster.Paused, w.move, w.policy.Hold, w.policy.Timeouts, w.policy.Methods, w.policy.Accepts, w.fleet.Limits.Paused, w.policy.Removal, w.policy.Escalation, m.Name, m.Paused, m.Hooks, m.DeleteMark)
}

// byHand is a delete annotation that a user set. The owner deletes that machine first when it scales in.
const byHand = "by hand"

// methods returns all methods that a policy may allow.
func methods() []v1alpha1.RepairMethod {
	return []v1alpha1.RepairMethod{v1alpha1.MethodRolloutSurge, v1alpha1.MethodSurge, v1alpha1.MethodRelaxedSurge, v1alpha1.MethodOwnerRemediation}
}

// content reverts everything that users did, except the replicas that they requested.
func (p *player) content() {
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
	if m.DeleteMark != byHand {
		return
	}
	m.DeleteMark = ""
	if len(p.w.machines)-deleting(p.w.machines) > int(*p.w.replicas()) {
		p.unmarked++
	}
}

// fragment fragments or fills a database. A member that is being defragmented may not recover.
func (p *player) fragment(m *machine) {
	w := p.w
	if !w.policy.Defragmentation.Wanted || !m.Member {
		return
	}
	switch rapid.IntRange(0, 4).Draw(p.t, "database") {
	case 0:
		w.stalls = !w.stalls && p.seldom("stalls")
	case 1:
		w.alarms = nil
		if !p.seldom("disarmed by people") {
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
	p.tell("the database of %s: %s, stalls %t, alarms %v", m.Name, m.Database, w.stalls, w.alarms)
}

// announce announces that a machine is about to stop, or withdraws the announcement.
func (p *player) announce(m *machine) {
	if len(p.w.policy.Checks.Notices) == 0 {
		return
	}
	at := p.w.now.Add(time.Duration(rapid.SampledFrom([]int{5, 15, 30}).Draw(p.t, "minutes")) * time.Minute)
	if m.Annotations != nil && p.seldom("taken back") {
		m.Annotations = nil
	} else {
		m.Annotations = map[string]string{maintenance: at.Format(time.RFC3339)}
	}
	p.tell("%s is about to stop: %v", m.Name, m.Annotations)
}

// stop stops the machines whose announced time has come.
func (p *player) stop() {
	for _, m := range p.w.machines {
		if at := m.stops(); m.Node != "" && m.Kubelet && !at.IsZero() && !p.w.now.Before(at) {
			p.faults++
			m.Kubelet, m.Etcd = false, false
			if m.Leader {
				p.w.elect("")
			}
			p.tell("%s stops", m.Name)
		}
	}
}

func (p *player) seldom(label string) bool { return rapid.IntRange(0, 2).Draw(p.t, label) == 0 }

// hurt breaks a machine, usually only while a majority stays healthy.
func (p *player) hurt(m *machine) {
	unwell := 0
	for _, m := range p.w.machines {
		if !p.w.well(m) {
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
		m.Etcd, m.Cut = false, p.w.stacked() && p.seldom("cut off")
		if m.Leader {
			p.w.elect("")
		}
	case 6:
		m.Unaskable = true
	case 7:
		m.Ill = p.w.healthCheck && m.Node != ""
	}
	p.tell("%s: kubelet %t, components %t, etcd %t, cut off %t, askable %t, pressed %t, ill %t", m.Name, m.Kubelet, m.Pods, m.Etcd, m.Cut, !m.Unaskable, m.Pressed, m.Ill)
}

func (p *player) heal(m *machine) {
	m.Pressed, m.Unaskable, m.Cut, m.Doomed, m.Ill, m.Updating = false, false, false, false, false, false
	m.Annotations = nil
	if m.Node != "" {
		m.Kubelet, m.Pods, m.Etcd = true, true, m.Member
	}
	p.tell("%s is well", m.Name)
}

// stumble keeps a starting machine from ever joining. It may already be a learner of etcd.
func (p *player) stumble(m *machine) {
	m.Doomed = m.Node == ""
	if m.Doomed && p.w.stacked() && !m.Member && !p.w.learner(m) && rapid.Bool().Draw(p.t, "learner") {
		m.Member, m.Learner, m.Etcd = true, true, rapid.Bool().Draw(p.t, "started")
	}
	p.tell("%s never joins: %t, learner: %t", m.Name, m.Doomed, m.Learner)
}

// progress performs what happens without scute: machines join, deleted machines disappear, and the controller of
// requests removes the finalizer of a deleted request when the remediation of its machine has ended.
func (p *player) progress() {
	for _, m := range slices.Clone(p.w.machines) {
		if u := p.state.Unhealthy[m.UID]; m.Request != nil && m.Request.Deleting && (u == nil || u.Mark == nil) && p.state.Active == nil {
			m.Request = nil
			p.tell("the request of %s is gone", m.Name)
		}
		switch {
		case m.Deleting && p.w.gone(m):
			p.tell("%s is gone", m.Name)
		case m.Node == "" && p.w.join(m):
			p.tell("%s joins", m.Name)
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
	p.tell("an operator on %s: %+v", m.Name, *m.Request)
}

// order performs random writes of users to machines, owners and policies.
func (p *player) order(m *machine) {
	w := p.w
	switch n := rapid.IntRange(0, 9).Draw(p.t, "order"); {
	case n < 3:
		m.Skip = p.seldom("skip")
		p.tell("skip %s: %t", m.Name, m.Skip)
	case n < 4:
		m.Remediate = !m.Remediate && p.seldom("remediate")
		p.tell("remediate %s: %t", m.Name, m.Remediate)
	case n < 5:
		if w.policy.Paused = nil; p.seldom("paused") {
			w.policy.Paused = []string{"a freeze"}
		}
		p.tell("policy paused %v", w.policy.Paused)
	case n < 6:
		w.owner.Paused = p.seldom("paused")
		p.tell("owner paused: %t", w.owner.Paused)
	case n < 8:
		p.revert()
	default:
		w.policy.Name, w.policy.Unreadable = "default", ""
		if p.seldom("unselected") {
			w.policy.Name = ""
		} else if p.seldom("unreadable") {
			w.policy.Unreadable = "spec.hold is a list"
		}
		p.tell("policy %q, unreadable: %q", w.policy.Name, w.policy.Unreadable)
	}
}

// hide makes the workload cluster or its etcd unreachable for scute.
func (p *player) hide() {
	w := p.w
	switch rapid.IntRange(0, 3).Draw(p.t, "hide") {
	case 0, 1:
		if w.cluster.Reach = object.True; p.seldom("out of reach") {
			w.cluster.Reach = object.False
		}
		p.tell("reach: %s", w.cluster.Reach)
	case 2:
		if w.etcdErr = ""; p.seldom("etcd error") {
			w.etcdErr = "no endpoint answers"
		}
		p.tell("etcd error: %q", w.etcdErr)
	case 3:
		w.sealed = !w.sealed
		p.tell("etcd is asked through kubelets alone: %t", w.sealed)
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
	if replicas := p.w.replicas(); *replicas != p.wish {
		p.reverted = true
		*replicas = p.wish
		p.tell("replicas are put back to %d", p.wish)
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
	if p.wish+by < 1 || p.wish+by > 9 || w.owner.Kind == "OtherControlPlane" || p.state.Active != nil && !midway {
		return
	}
	p.want(by)
	p.tell("people want %d machines", p.wish)
}

// rollOut starts a rollout of all machines, or an update in place of one machine, which may never end.
func (p *player) rollOut(m *machine) {
	w := p.w
	if w.owner.Kind == string(remediator.ControlPlane) && m.Node != "" && !m.Deleting && rapid.Bool().Draw(p.t, "in place") {
		m.Updating = !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Updating })
		p.tell("%s is updated in place: %t", m.Name, m.Updating)
		return
	}
	w.target += "+"
	p.tell("a rollout to %s", w.target)
}
