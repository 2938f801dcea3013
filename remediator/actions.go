package remediator

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// Actions are the writes that the state calls for and the facts do not show, in their order: one that fails keeps all that
// follow it from being performed, first those of the remediation under way, then the marks and requests of all machines.
// Facts that show all of them call for none; facts that lag behind call for one again, which does no harm.
func Actions(s *State, f *Facts) []Action {
	if !f.Owner.Found || (f.Policy.DryRun || f.Policy.Unreadable != "") && s.Active == nil || f.Move != "" || f.Cluster.Paused {
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
		if !f.isControlPlane() && v.victim.DeleteMark == "" && !v.victim.Deleting {
			return nil // without a mark the owner would delete any of its machines
		}
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
	unwanted := false
	for _, m := range v.newcomers {
		unwanted = unwanted || contains(a.Extras, m)
		if contains(a.Extras, m) && m.DeleteMark == "" && (v.surplus() || v.asking()) {
			actions = append(actions, Action{Do: SetDelete, Machine: m.subject(), Value: DeleteValue})
		}
	}
	if !unwanted && v.filling() && len(v.newcomers) > 0 && v.newcomers[0].DeleteMark == "" {
		actions = append(actions, Action{Do: SetDelete, Machine: v.newcomers[0].subject(), Value: DeleteValue})
	}
	return append(actions, v.scaleBack()...)
}

// filling: the victim was taken away by somebody while the owner is asked for one more. The owner makes another machine at
// any moment, and would delete one too many when it hears of the replicas: a newcomer is marked for it.
func (v view) filling() bool {
	return v.asking() && (v.victim == nil || v.victim.Deleting) && v.staying() < int(v.replicas)
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

// putBack gives the lever its value from before, where it is seen to be pulled. What a machine was cloned from is looked up
// only while something is wrong with it; the delete mark comes before the lever and goes after it, so that it is until then.
func (v view) putBack() []Action {
	if !v.pulled() {
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

// handedOver: the owner is still asked to remediate the victim itself, which deletes it.
func (v view) handedOver() bool {
	return v.victim != nil && v.a.Request.Method == OwnerRemediation && v.victim.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False
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
	if v.handedOver() {
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
		if v.heard() && (!contains(v.a.Extras, m) || !v.tooMany()) && m.DeleteMark == DeleteValue {
			actions = append(actions, Action{Do: SetDelete, Machine: m.subject()})
		}
	}
	actions = append(append(actions, v.giveBack()...), v.giveBackOff()...)
	return append(append(actions, v.relaxOff()...), v.touch(false, "")...)
}
