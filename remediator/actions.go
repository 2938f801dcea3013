package remediator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// Actions are the writes that the state calls for and the facts do not show, in their order: one that fails keeps all that
// follow it from being performed, first those of the remediation under way, then the marks and requests of all machines.
// Facts that show all of them call for none; facts that lag behind call for one again, which does no harm.
func Actions(s *State, f *Facts) []Action {
	if !f.Owner.Found || f.Policy.DryRun && s.Active == nil || f.Move != "" || f.Cluster.Paused {
		return nil // of a paused cluster nothing is written, not even a mark: it may be on its way to another place
	}
	if s.Active != nil {
		return append(underWay(s, f), housekeeping(s, f)...)
	}
	return append(tidy(f), housekeeping(s, f)...)
}

// underWay are the writes of the remediation under way.
func underWay(s *State, f *Facts) []Action {
	v := newView(s.Active, f)
	switch a := s.Active; {
	case f.Owner.Paused, a.Frozen == freezeForeign && a.Step != Cancelling:
		return nil
	case a.Step == Cancelling:
		return unwind(v)
	case a.Gone:
		return settle(v)
	case v.victim == nil:
		return nil // first it is said that it is gone
	case a.Frozen != "" && a.Frozen != freezeHeld, f.isControlPlane() && blind(f) != nil:
		return v.restore() // of what was asked for, no more than was needed is to come
	case f.isControlPlane():
		return v.controlPlane(s)
	case a.Request.Method == OwnerRemediation:
		return v.handOver()
	default:
		return v.worker()
	}
}

func (v view) set(deed Deed, value string) Action {
	return Action{Do: deed, Machine: v.a.Victim, Value: value}
}

// controlPlane: the mark on the victim always comes first, then what makes the owner act.
func (v view) controlPlane(s *State) []Action {
	a := v.a
	if a.Request.Method == OwnerRemediation {
		return v.handOver()
	}
	if v.victim.Deleting {
		return append(append(v.keep(), v.relaxOff()...), v.restore()...)
	}
	actions := v.leave()
	if v.victim.DeleteMark == "" {
		actions = append(actions, v.set(SetDelete, DeleteValue))
	}
	if v.scales() {
		actions = append(actions, v.scaleUp()...)
	} else {
		actions = append(actions, v.pull(a.Request.Pull)...)
	}
	waiting := a.Replacement.UID == "" && len(v.newcomers) == 0
	if waiting && a.Request.Relaxed {
		actions = append(actions, v.relaxOn(s)...)
	}
	if !waiting {
		actions = append(actions, v.relaxOff()...)
	}
	actions = append(actions, v.touch(waiting, "")...)
	return append(actions, v.restore()...)
}

// leave moves etcd's leadership off a victim whose owner cannot: its components are not well. A member that does not answer
// loses it by itself.
func (v view) leave() []Action {
	member := v.f.Etcd.member(v.victim)
	if member == nil || !member.Leader || member.Answers != object.True || len(v.victim.broken(v.f.Owner.ExternalEtcd)) == 0 {
		return nil
	}
	for _, other := range v.f.Etcd.Members {
		if other.Node != member.Node && !other.Learner && other.Answers == object.True {
			return []Action{v.set(Lead, other.Node)}
		}
	}
	return nil
}

func (v view) scaleUp() []Action {
	a := v.a
	if a.Raised || len(v.newcomers) > 0 || v.rolling() || v.replicas == a.Request.To {
		return nil
	}
	return []Action{{Do: Scale, Machine: a.Victim, Where: a.Request.Where, Replicas: a.Request.To, Expect: a.Request.From}}
}

// restore puts replicas back as soon as a newcomer exists, or a rollout makes one. Newcomers that are not wanted are
// marked before, so that they go and no veteran does.
func (v view) restore() []Action {
	a := v.a
	if !v.scales() || len(v.newcomers) == 0 && !v.rolling() && !a.Gone || !v.f.isControlPlane() && !a.Ready && !a.Gone {
		return nil
	}
	var actions []Action
	for _, m := range v.newcomers {
		if contains(a.Extras, m) && m.DeleteMark == "" && (v.surplus() || v.asking()) {
			actions = append(actions, Action{Do: SetDelete, Machine: m.subject(), Value: DeleteValue})
		}
	}
	return append(actions, v.scaleBack()...)
}

func (v view) scaleBack() []Action {
	r := v.a.Request
	if !v.scales() || v.replicas != r.To {
		return nil
	}
	return []Action{{Do: Scale, Machine: v.a.Victim, Where: r.Where, Replicas: r.From, Expect: r.To}}
}

// pull sets the lever to a value.
func (v view) pull(value string) []Action {
	switch r := v.a.Request; {
	case v.victim == nil || r.Method != RolloutSurge:
		return nil
	case r.Lever == LeverCertificates && v.victim.Certificates != value:
		return []Action{v.set(SetCertificates, value)}
	case r.Lever == LeverClonedFrom && v.victim.ClonedFrom != value:
		return []Action{v.set(SetClonedFrom, value)}
	default:
		return nil
	}
}

// putBack gives the lever its value from before. What a victim that was spared was cloned from is not looked up any more when
// nothing else is wrong with it; that it is right again was seen before it was spared.
func (v view) putBack() []Action {
	if v.a.Spared && v.victim != nil && v.victim.ClonedFrom == "" && v.a.Request.Lever == LeverClonedFrom {
		return nil
	}
	return v.pull(v.a.Request.Original)
}

// relaxation is KCP's own note of a remediation that it has begun: with it, its preflight looks at less.
type relaxation struct {
	Machine    string `json:"machine"`
	Timestamp  string `json:"timestamp"`
	RetryCount int    `json:"retryCount"`
}

func (v view) relaxOn(s *State) []Action {
	if v.f.Owner.Relaxed != "" {
		return nil
	}
	note := relaxation{Machine: v.a.Victim.Name, Timestamp: s.Active.StartedAt.UTC().Format(time.RFC3339)}
	var before relaxation
	if json.Unmarshal([]byte(v.victim.RemediationFor), &before) == nil {
		note.RetryCount = before.RetryCount // a chain of retries goes on counting
	}
	return []Action{v.set(SetRelaxed, toJSON(note))}
}

// relaxOff takes ours off: the owner leaves its note when it refuses, and would remediate nothing more.
func (v view) relaxOff() []Action {
	var note relaxation
	if v.f.Owner.Relaxed == "" || !v.a.Request.Relaxed || json.Unmarshal([]byte(v.f.Owner.Relaxed), &note) != nil || note.Machine != v.a.Victim.Name {
		return nil
	}
	return []Action{v.set(SetRelaxed, "")}
}

// touch makes the owner look at what it does not watch: a lever on another object.
func (v view) touch(needed bool, why string) []Action {
	want := ""
	if needed && v.a.Request.Lever == LeverClonedFrom {
		want = fmt.Sprintf("%s-%d%s", v.a.Victim.Name, v.a.Request.Attempt, why)
	}
	if v.f.Owner.Touched == want {
		return nil
	}
	return []Action{v.set(Touch, want)}
}

func (v view) handOver() []Action {
	if v.victim.Deleting || v.victim.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False {
		return nil
	}
	if !v.f.maySpare(v.victim) {
		return nil // another member fell silent since it was decided
	}
	return append(v.leave(), v.set(HandOver, ""))
}

// worker: one more, wait until it is ready, mark the victim, back.
func (v view) worker() []Action {
	if v.victim.Deleting {
		return v.restore()
	}
	actions := v.scaleUp()
	if v.a.Ready && v.victim.DeleteMark == "" {
		actions = append(actions, v.set(SetDelete, DeleteValue))
	}
	return append(actions, v.restore()...)
}

// unwind takes back: the newcomers' marks first, the victim's last.
func unwind(v view) []Action {
	var actions []Action
	for _, m := range v.newcomers {
		if m.DeleteMark == "" && (v.tooMany() || v.asking()) {
			actions = append(actions, Action{Do: SetDelete, Machine: m.subject(), Value: DeleteValue})
		}
	}
	actions = append(actions, v.relaxOff()...)
	actions = append(actions, v.putBack()...)
	if back := v.scaleBack(); len(back) > 0 {
		if v.victim != nil && v.victim.DeleteMark == "" && len(v.newcomers) == 0 && !v.a.Spared {
			actions = append(actions, v.set(SetDelete, DeleteValue)) // a newcomer may be there that was not seen yet
		}
		actions = append(actions, back...)
	}
	actions = append(append(actions, v.giveBack()...), v.giveBackOff()...)
	if v.victim != nil && v.a.Request.Method == OwnerRemediation && v.victim.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False {
		actions = append(actions, v.set(TakeBack, ""))
	}
	if v.victim != nil && v.a.Spared && v.victim.DeleteMark == DeleteValue {
		actions = append(actions, v.set(SetDelete, ""))
	}
	return append(actions, v.touch(!v.a.Spared || len(v.newcomers) > 0 && v.tooMany(), "-cancel")...)
}

// giveBack hands a newcomer that is not wanted to its owner's own remediation, where the owner's scale-down is blocked: by
// the victim, if nothing else, whose components are not well.
func (v view) giveBack() []Action {
	switch {
	case !v.f.isControlPlane() || !v.a.Spared && !v.a.Gone || v.leaving > 0:
		return nil
	case !v.tooMany():
		return v.keep()
	}
	for _, m := range v.newcomers {
		if v.a.Gone && !contains(v.a.Extras, m) || !v.obstructed(m) || v.f.Owner.Relaxed != "" || blind(v.f) != nil || !v.f.maySpare(m) {
			continue
		}
		if m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status != object.False {
			return []Action{{Do: HandOver, Machine: m.subject()}}
		}
		return nil // one at a time
	}
	return nil
}

// keep takes back that newcomers were handed to their owner: somebody took another machine away, and they stay.
func (v view) keep() []Action {
	var actions []Action
	for _, m := range v.newcomers {
		if m.Conditions[clusterv1.MachineHealthCheckSucceededCondition].Reason == HandOverReason &&
			m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False {
			actions = append(actions, Action{Do: TakeBack, Machine: m.subject()})
		}
	}
	return actions
}

// giveBackOff takes the owner's note of such a remediation off: it waits for a machine that is to be made, and there is none.
func (v view) giveBackOff() []Action {
	var note relaxation
	if v.f.Owner.Relaxed == "" || v.short() || json.Unmarshal([]byte(v.f.Owner.Relaxed), &note) != nil {
		return nil
	}
	// It names a newcomer that is gone.
	if slices.ContainsFunc(v.a.Request.Baseline, func(m Subject) bool { return m.Name == note.Machine }) ||
		slices.ContainsFunc(v.f.Machines, func(m Machine) bool { return m.Name == note.Machine }) {
		return nil
	}
	return []Action{{Do: SetRelaxed, Machine: Subject{Name: note.Machine}}}
}

// settle leaves nothing of ours behind: the victim is gone.
func settle(v view) []Action {
	actions := v.restore()
	for _, m := range v.newcomers {
		if (!contains(v.a.Extras, m) || !v.tooMany()) && m.DeleteMark == DeleteValue {
			actions = append(actions, Action{Do: SetDelete, Machine: m.subject()})
		}
	}
	actions = append(append(actions, v.giveBack()...), v.giveBackOff()...)
	return append(append(actions, v.relaxOff()...), v.touch(false, "")...)
}

// tidy removes what an interrupted cancellation left: delete marks of ours, where the owner has no machine too many.
func tidy(f *Facts) []Action {
	var actions []Action
	if len(f.Machines) > int(f.Owner.Replicas) {
		return nil
	}
	for i := range f.Machines {
		if m := &f.Machines[i]; m.DeleteMark == DeleteValue && !m.Deleting {
			actions = append(actions, Action{Do: SetDelete, Machine: m.subject()})
		}
	}
	return actions
}

// housekeeping: the marks that people see, the requests, the ladder's objects.
func housekeeping(s *State, f *Facts) []Action {
	var actions []Action
	for i := range f.Machines {
		m := &f.Machines[i]
		p := s.Patients[m.UID]
		if m.Deleting {
			continue
		}
		// Only of a machine that has a mark or a request it is looked up whether such objects are there.
		actions = append(actions, rungs(p, m, f)...)
		if want := s.markOn(p); want != m.Mark {
			actions = append(actions, Action{Do: SetMark, Machine: m.subject(), Value: want})
		}
		actions = append(actions, s.request(p, m)...)
		if m.recovered(p, s) {
			actions = append(actions, Action{Do: TakeBack, Machine: m.subject()})
		}
	}
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Machine.Name, b.Machine.Name), cmp.Compare(a.Machine.UID, b.Machine.UID))
	})
	return actions
}

// markOn is the annotation that a machine is to bear; "" for none.
func (s *State) markOn(p *Patient) string {
	if p == nil || p.Mark == nil {
		return ""
	}
	state := p.Mark.State
	if s.Active != nil && s.Active.Victim.UID == p.UID && s.Active.Step != Cancelling {
		state = Scheduled
	}
	return toJSON(v1alpha1.UnhealthyMark{
		State: string(state), Since: metav1.Time{Time: p.Mark.Since.UTC().Truncate(time.Second)}, Reason: p.Mark.Reason,
		Source: string(p.Mark.Source), Remediation: s.Owner.Remediation(p.Name),
	})
}

// request: an unhealthy machine has one, also where no MachineHealthCheck made it. One that we no longer need goes, unless
// a MachineHealthCheck still says that the machine is unhealthy: it deletes the request itself when it no longer does.
func (s *State) request(p *Patient, m *Machine) []Action {
	switch {
	case p == nil:
		return nil
	case p.Mark != nil && p.Mark.State == Unhealthy && m.Request == nil:
		return []Action{{Do: MakeRequest, Machine: m.subject()}}
	case p.Mark == nil && m.Request != nil && !m.Request.Deleting && m.Request.Created.Before(p.ClearedAt) &&
		m.Conditions[clusterv1.MachineHealthCheckSucceededCondition].Status != object.False:
		return []Action{{Do: DropRequest, Machine: m.subject()}}
	default:
		return nil
	}
}

// recovered: the machine is healthy, and conditions of its remediation stand on it that nobody else takes off.
func (m *Machine) recovered(p *Patient, s *State) bool {
	if p == nil || p.Mark != nil || s.Active != nil && (s.Active.Victim.UID == m.UID || !contains(s.Active.Request.Baseline, m)) {
		return false // of what takes part in a remediation, that one knows what it asked for
	}
	check := m.Conditions[clusterv1.MachineHealthCheckSucceededCondition]
	return check.Status == object.False && check.Reason == HandOverReason ||
		m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False ||
		m.Conditions[clusterv1.MachineExternallyRemediatedCondition].Status == object.False && (m.Request == nil || m.Request.Deleting)
}

// rungs: the object of the step under way is there, those of others are not.
func rungs(p *Patient, m *Machine, f *Facts) []Action {
	var actions []Action
	for _, r := range f.Policy.Ladder {
		wanted, there := p != nil && p.Mark != nil && p.Rung == r.Name, slices.Contains(m.Rungs, r.Name)
		switch {
		case wanted && !there:
			actions = append(actions, Action{Do: MakeRung, Machine: m.subject(), Value: r.Name})
		case !wanted && there:
			actions = append(actions, Action{Do: DropRung, Machine: m.subject(), Value: r.Name})
		}
	}
	return actions
}

func toJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // of plain strings and numbers: it does not happen
	}
	return string(raw)
}
