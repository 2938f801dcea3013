package remediator

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// tidy removes what ended remediations left: the annotation that triggered the owner and, if the owner has no surplus machine, scute's delete
// annotations, and the owner's annotation of a remediation whose replacement is no longer needed.
func tidy(s *State, f *Facts) []Action {
	var actions []Action
	if f.Owner.Touched != "" {
		actions = append(actions, Action{Type: Touch})
	}
	actions = append(actions, f.unmark()...)
	name, ok := f.orphan()
	ended := func(e PastRemediation) bool {
		named := func(m Subject) bool { return m.Name == name }
		return named(e.Victim) || named(e.Replacement) || slices.ContainsFunc(e.Extras, named)
	}
	if ok && f.leaving() == 0 && len(f.Machines) >= int(f.Owner.Replicas) && slices.ContainsFunc(s.History, ended) {
		actions = append(actions, Action{Type: SetRelaxed, Machine: Subject{Name: name}})
	}
	return actions
}

// strayHandOvers withdraws hand-overs that are not in this log, because no process checks any more whether they are safe. It keeps those of a
// MachineHealthCheck that does not ask scute. If the policy cannot be read, machines without a mark are included, because no machine is marked then.
func (s *State) strayHandOvers(f *Facts) []Action {
	return on(f.all(), Withdraw, func(m *Machine) bool {
		a, u := s.activeOf(m.UID), s.Unhealthy[m.UID]
		ours := a != nil && a.Request.Method == OwnerRemediation || s.partOf(m) != nil
		theirs := m.Unwired != "" && m.lastCheck().Reason != HandOverReason
		asked := u != nil && u.Mark != nil || f.Policy.Unreadable != ""
		return handedOver(m) && !m.Deleting && asked && !ours && !theirs
	})
}

// unmark removes the delete annotations that were left behind.
func (f *Facts) unmark() []Action {
	return on(f.all(), SetDelete, f.leftBehind)
}

// leftBehind reports whether a machine has a delete annotation of scute although enough others have one for all surplus machines, by the lower of the
// owner's replicas and those in the topology. The annotations of broken machines are kept first, then those of the newest machines.
func (f *Facts) leftBehind(m *Machine) bool {
	if !m.marked() {
		return false
	}
	before := 0
	for other := range f.all() {
		first := cmp.Or(cmp.Compare(count(len(m.broken(f.Owner.ExternalEtcd)) > 0), count(len(other.broken(f.Owner.ExternalEtcd)) > 0)),
			m.Created.Compare(other.Created), cmp.Compare(m.Name, other.Name))
		before += count(other.marked() && first < 0)
	}
	return before >= f.staying()-int(min(f.Owner.Replicas, f.wanted()))
}

// marked reports whether a machine has a delete annotation of scute, and is not being deleted yet.
func (m *Machine) marked() bool { return m.DeleteMark == DeleteValue && !m.Deleting }

// untidied returns a wait if an earlier remediation left a delete annotation on another machine, or on a machine that is handed over and needs none.
// It is removed first, because it cannot be removed during a remediation.
func (f *Facts) untidied(d Decision, victim *Machine) *Decision {
	for m := range f.all() {
		if (m.UID != victim.UID || d.Verdict == OwnerRemediation) && f.leftBehind(m) {
			return m.leftover()
		}
	}
	return nil
}

func (m *Machine) leftover() *Decision {
	return ask("nothing, if it passes; else see why the annotation cluster.x-k8s.io/delete-machine of machine "+m.Name+" cannot be taken off",
		"leftover-mark", "machine %s has a mark of an earlier remediation that must be removed first", m.Name)
}

// otherMarked returns a wait if another machine has a delete annotation, because the owner may delete it instead of the unhealthy machine.
func (f *Facts) otherMarked(victim *Machine) *Decision {
	for m := range f.all() {
		switch {
		case m.UID == victim.UID || m.Deleting:
		case m.DeleteMark == DeleteValue:
			return m.leftover()
		case m.DeleteMark != "":
			return ask("take that annotation off, or let the machine go", "foreign-mark", "machine %s has somebody else's annotation cluster.x-k8s.io/delete-machine: with more replicas, the owner could take that one", m.Name)
		}
	}
	return nil
}

// leftOvers removes the delete annotations of workers whose remediation has ended while others are in progress.
func (s *State) leftOvers(f *Facts) []Action {
	if f.isControlPlane() || s.Active.Request.Method != Surge {
		return nil
	}
	return slices.DeleteFunc(f.unmark(), func(a Action) bool {
		return s.activeOf(a.Machine.UID) != nil || s.partOf(f.machine(a.Machine)) != nil
	})
}

// housekeeping returns the writes of the unhealthy annotations, of requests, and of the objects of escalation steps.
func housekeeping(s *State, f *Facts, now time.Time) []Action {
	var actions []Action
	for m := range f.all() {
		u := s.Unhealthy[m.UID]
		if m.Deleting {
			continue
		}
		// The facts contain these objects only for a machine with the unhealthy annotation or a request.
		actions = append(actions, stepActions(u, m, f)...)
		if want := s.markOn(u); want != m.Mark {
			actions = append(actions, Action{Type: SetMark, Machine: m.subject(), Value: want})
		}
		actions = append(actions, s.request(u, m, now)...)
		if m.recovered(u, s, now) {
			actions = append(actions, Action{Type: ClearConditions, Machine: m.subject()})
		}
	}
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(
			cmp.Compare(count(b.Type == DeleteStepObject), count(a.Type == DeleteStepObject)), // a step may put the control plane at risk
			cmp.Compare(a.Machine.Name, b.Machine.Name), cmp.Compare(a.Machine.UID, b.Machine.UID),
		)
	})
	return actions
}

// markOn returns the value that the unhealthy annotation of a machine should have; "" for none.
func (s *State) markOn(u *UnhealthyMachine) string {
	if u == nil || u.Mark == nil {
		return ""
	}
	state := u.Mark.State
	if a := s.activeOf(u.UID); a != nil && !a.takingBack() {
		state = Scheduled
	}
	return toJSON(v1alpha1.UnhealthyMark{
		State: string(state), Since: metav1.Time{Time: u.Mark.Since.UTC().Truncate(time.Second)}, Reason: u.Mark.Reason,
		Source: string(u.Mark.Source), Remediation: s.Owner.Remediation(u.Name),
	})
}

// request creates the request of an unhealthy machine if no MachineHealthCheck has. It deletes a request that is no longer needed, unless a
// MachineHealthCheck still reports the machine as unhealthy: that check deletes the request later.
func (s *State) request(u *UnhealthyMachine, m *Machine, now time.Time) []Action {
	switch {
	case u == nil && m.forgotten(now):
		return []Action{{Type: DeleteRequest, Machine: m.subject()}}
	case u == nil:
		return nil
	case u.Mark != nil && u.Mark.State == Unhealthy && (m.Request == nil || !m.Request.Deleting && u.missed(m.Request, now)):
		return []Action{{Type: CreateRequest, Machine: m.subject(), Value: u.orders(now)}}
	case u.Mark != nil && u.Mark.State == Unhealthy && m.Request.Deleting && u.missed(m.Request, now):
		return []Action{{Type: DeleteRequest, Machine: m.subject()}} // the orders are copied to the next request, where an operator can remove them
	case u.Mark == nil && m.Request != nil && !m.Request.Deleting && (m.Request.Created.Before(u.ClearedAt) || settled(m.Request.Created, now)) && len(u.hears(m.Request)) == 0 &&
		m.lastCheck().Status != object.False:
		return []Action{{Type: DeleteRequest, Machine: m.subject(), Value: m.Request.orders()}}
	default:
		return nil
	}
}

// settledIn is how long a request is kept whose machine is unknown to the log, because a MachineHealthCheck creates the request before it reports the
// machine as unhealthy.
const settledIn = time.Minute

// settled reports whether a time is at least settledIn ago. A time in the future was written before a clock was set back, and is settled too.
func settled(since, now time.Time) bool {
	return !now.Before(since.Add(settledIn)) || ahead(since, now)
}

// forgotten reports whether the machine is healthy, and has a request that the log no longer has, because it retains only the last few. A request
// that a user created, or that has orders, is not forgotten.
func (m *Machine) forgotten(now time.Time) bool {
	r := m.Request
	return r != nil && !r.Deleting && !r.ByHand && !r.Hold && !r.Abort && settled(r.Created, now) &&
		m.lastCheck().Status != object.False
}

// orders returns the spec of a new request for the machine, with the orders that operators wrote on an earlier request.
func (u *UnhealthyMachine) orders(now time.Time) string {
	return requestSpec(u.Aborted, u.held(now), u.HoldUntil, u.HoldWhy)
}

// orders returns the spec with the orders on the request, or "".
func (r *Request) orders() string { return requestSpec(r.Abort, r.Hold, r.HoldUntil, r.HoldWhy) }

func requestSpec(abort, hold bool, until time.Time, why string) string {
	const longest = 512 // of a reason
	spec := v1alpha1.SurgeRemediationSpec{Abort: abort}
	if hold {
		spec.Hold = &v1alpha1.RemediationHold{Until: stamp(until), Reason: strings.ToValidUTF8(why[:min(len(why), longest)], "")}
	}
	if !spec.Abort && spec.Hold == nil {
		return ""
	}
	return toJSON(spec)
}

// recovered reports whether the machine is healthy, and has conditions of its remediation that nothing else removes.
func (m *Machine) recovered(u *UnhealthyMachine, s *State, now time.Time) bool {
	if u != nil && u.Mark != nil || s.activeOf(m.UID) != nil || s.partOf(m) != nil {
		return false // the remediation in progress removes its own requests
	}
	if m.leftUnhealthy() && m.Passed == object.True && settled(m.lastCheck().Since, now) {
		return true
	}
	check := m.lastCheck()
	if r := m.Request; check.Status == object.False && m.Unwired == "" && m.Passed == object.Absent && r != nil && !r.ByHand && !r.Deleting {
		return true // the MachineHealthCheck that asked scute is gone, or no longer selects the machine
	}
	if check.Reason != HandOverReason && (u == nil || m.Unwired != "") {
		return false // another client may have set them, such as a MachineHealthCheck that does not ask scute
	}
	return check.Status == object.False && check.Reason == HandOverReason ||
		m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False ||
		m.Conditions[clusterv1.MachineExternallyRemediatedCondition].Status == object.False && (m.Request == nil || m.Request.Deleting)
}

func (m *Machine) lastCheck() Condition {
	return m.Conditions[clusterv1.MachineHealthCheckSucceededCondition]
}

// leftUnhealthy reports whether the result of a MachineHealthCheck that asks scute may stay forever. The check resets it only on a machine with a
// request, and creates none while more machines are unhealthy than its limit (Cluster API issue 13822). The owner then never counts the machine as
// available.
func (m *Machine) leftUnhealthy() bool {
	c := m.lastCheck()
	return m.Passed != object.Absent && m.Unwired == "" && m.Request == nil && c.Status == object.False && c.Reason != HandOverReason
}

// stepActions creates the object of the current step, and deletes the objects of other steps.
func stepActions(u *UnhealthyMachine, m *Machine, f *Facts) []Action {
	var actions []Action
	for _, step := range u.steps(f.Policy.Escalation) {
		wanted, there := u != nil && u.Mark != nil && u.EscalationStep == step && !u.Aborted && !m.Skip && !f.riskyAway(m), slices.Contains(m.StepObjects, step)
		switch {
		case wanted && !there:
			actions = append(actions, Action{Type: CreateStepObject, Machine: m.subject(), Value: step})
		case !wanted && there:
			actions = append(actions, Action{Type: DeleteStepObject, Machine: m.subject(), Value: step, Object: u.made(step)})
		}
	}
	return actions
}

// riskyAway reports whether the control plane is at risk while the machine is unavailable. It returns false if that is unknown, so the object stays.
func (f *Facts) riskyAway(m *Machine) bool {
	return !Blind(f) && !f.away(m).none()
}

func toJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // impossible for strings and numbers
	}
	return string(raw)
}
