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

// cleanUp returns the writes that remove the annotations that ended remediations left: the
// annotation that triggered the owner, unneeded delete annotations of scute and, if the owner has
// enough machines, its annotation remediation-in-progress if it names a machine that is gone.
func cleanUp(s *State, f *Facts) []Action {
	var actions []Action
	if f.Owner.Touched != "" {
		actions = append(actions, Action{Type: Touch})
	}
	actions = append(actions, f.removeDeleteAnnotations()...)
	name, ok := f.orphan()
	ended := func(e pastRemediation) bool {
		named := func(m Subject) bool { return m.Name == name }
		return named(e.Victim) || named(e.Replacement) || slices.ContainsFunc(e.Extras, named)
	}
	if ok && f.deletingMachines() == 0 && len(f.Machines) >= int(f.Owner.Replicas) && slices.ContainsFunc(s.History, ended) {
		actions = append(actions, Action{Type: SetRelaxed, Machine: Subject{Name: name}})
	}
	return actions
}

// withdrawStrayHandOvers returns the writes that withdraw hand-overs that are not in this log,
// because no process checks any more whether they are safe. It keeps the hand-overs of a
// MachineHealthCheck that does not request remediations from scute. While the policy cannot be
// read, no machine gets a mark, so machines without a mark are included.
func (s *State) withdrawStrayHandOvers(f *Facts) []Action {
	return actionsFor(f.all(), Withdraw, func(m *Machine) bool {
		a, u := s.activeOf(m.UID), s.record(m.UID)
		ours := a != nil && a.Request.Method == OwnerRemediation || s.creatorOf(m) != nil
		theirs := m.OtherHealthCheck != "" && m.lastCheck().Reason != HandOverReason
		asked := u.marked() || f.Policy.Unreadable != ""
		return handedOver(m) && !m.Deleting && asked && !ours && !theirs
	})
}

func (f *Facts) removeDeleteAnnotations() []Action {
	return actionsFor(f.all(), SetDelete, f.isLeftover)
}

// isLeftover reports whether a machine has an unneeded delete annotation of scute: at least as many
// other machines that take precedence have the annotation as there are surplus machines. Broken
// machines take precedence, then newer machines. The surplus is counted from the replicas of the
// owner or of the topology, whichever are lower.
func (f *Facts) isLeftover(m *Machine) bool {
	if !m.hasDeleteAnnotation() {
		return false
	}
	before := 0
	for other := range f.all() {
		first := cmp.Or(cmp.Compare(boolToInt(f.isBroken(m)), boolToInt(f.isBroken(other))),
			m.Created.Compare(other.Created), cmp.Compare(m.Name, other.Name))
		before += boolToInt(other.hasDeleteAnnotation() && first < 0)
	}
	return before >= f.remainingMachines()-int(min(f.Owner.Replicas, f.desiredReplicas()))
}

func (m *Machine) hasDeleteAnnotation() bool { return m.DeleteAnnotation == DeleteValue && !m.Deleting }

// checkLeftovers returns a wait if an earlier remediation left a delete annotation on a machine
// other than the victim, or on a victim that is about to be handed over and needs none. The
// annotation must be removed before the remediation starts, because it cannot be removed during it.
func (f *Facts) checkLeftovers(d Decision, victim *Machine) *Decision {
	for m := range f.all() {
		if (m.UID != victim.UID || d.Verdict == OwnerRemediation) && f.isLeftover(m) {
			return m.waitForCleanup()
		}
	}
	return nil
}

func (m *Machine) waitForCleanup() *Decision {
	return waitForHuman("if this lasts, find out why the annotation cluster.x-k8s.io/delete-machine of machine "+m.Name+" cannot be removed",
		"leftover-mark", "machine %s has the delete annotation of an earlier remediation, which must be removed first", m.Name)
}

// checkOtherAnnotations returns a wait if a machine other than the victim has a delete annotation,
// because the owner may delete that machine instead of the victim.
func (f *Facts) checkOtherAnnotations(victim *Machine) *Decision {
	for m := range f.all() {
		switch {
		case m.UID == victim.UID || m.Deleting:
		case m.DeleteAnnotation == DeleteValue:
			return m.waitForCleanup()
		case m.DeleteAnnotation != "":
			return waitForHuman("remove the annotation, or delete the machine", "foreign-mark", "machine %s has the annotation cluster.x-k8s.io/delete-machine of another client: with more replicas, the owner might delete that machine", m.Name)
		}
	}
	return nil
}

// removeLeftoverAnnotations returns the writes that remove the delete annotations of workers whose
// remediation has ended while remediations of other workers are in progress.
func (s *State) removeLeftoverAnnotations(f *Facts) []Action {
	if f.isControlPlane() || s.Active.Request.Method != Surge {
		return nil
	}
	return slices.DeleteFunc(f.removeDeleteAnnotations(), func(a Action) bool {
		return s.activeOf(a.Machine.UID) != nil || s.creatorOf(f.machine(a.Machine)) != nil
	})
}

// housekeeping returns the writes to the unhealthy annotations, the requests, the conditions of
// recovered machines, and the objects of escalation steps.
func housekeeping(s *State, f *Facts, now time.Time) []Action {
	var actions []Action
	for m := range f.all() {
		u := s.record(m.UID)
		if m.Deleting {
			continue
		}
		// The facts contain these objects only for a machine with the unhealthy annotation or a request.
		actions = append(actions, stepActions(u, m, f)...)
		if want := s.unhealthyAnnotation(u); want != m.UnhealthyAnnotation {
			actions = append(actions, Action{Type: SetUnhealthy, Machine: m.subject(), Value: want})
		}
		actions = append(actions, s.requestActions(u, m, now)...)
		if m.recovered(u, s, now) {
			actions = append(actions, Action{Type: ClearConditions, Machine: m.subject()})
		}
	}
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(
			cmp.Compare(boolToInt(b.Type == DeleteStepObject), boolToInt(a.Type == DeleteStepObject)), // a step may put the control plane at risk
			cmp.Compare(a.Machine.Name, b.Machine.Name), cmp.Compare(a.Machine.UID, b.Machine.UID),
		)
	})
	return actions
}

// unhealthyAnnotation returns the value that the unhealthy annotation of a machine should have; "" for none.
func (s *State) unhealthyAnnotation(u *UnhealthyMachine) string {
	if !u.marked() {
		return ""
	}
	state := u.Mark.State
	if a := s.activeOf(u.UID); a != nil && !a.isCancelling() {
		state = Scheduled
	}
	return toJSON(v1alpha1.UnhealthyMark{
		State: string(state), Since: metav1.Time{Time: u.Mark.Since.UTC().Truncate(time.Second)}, Reason: u.Mark.Reason,
		Source: string(u.Mark.Source), Remediation: s.Owner.Remediation(u.Name),
	})
}

// requestActions returns the write that creates the request of an unhealthy machine, if no
// MachineHealthCheck has created one, or the write that deletes a request that is no longer needed.
// It deletes no request while a MachineHealthCheck still reports the machine as unhealthy, because
// the MachineHealthCheck deletes the request itself.
func (s *State) requestActions(u *UnhealthyMachine, m *Machine, now time.Time) []Action {
	switch {
	case u.UID == "" && m.forgotten(now):
		return []Action{{Type: DeleteRequest, Machine: m.subject()}}
	case u.UID == "":
		return nil
	case u.isUnhealthy() && (m.Request == nil || !m.Request.Deleting && u.lacksOrder(m.Request, now)):
		return []Action{{Type: CreateRequest, Machine: m.subject(), Value: requestSpec(u.Aborted, u.held(now), u.HoldUntil, u.HoldReason)}}
	case u.isUnhealthy() && m.Request.Deleting && u.lacksOrder(m.Request, now):
		return []Action{{Type: DeleteRequest, Machine: m.subject()}} // the orders are copied to the next request, where an operator can remove them
	case !u.marked() && m.Request != nil && !m.Request.Deleting && (m.Request.Created.Before(u.ClearedAt) || settled(m.Request.Created, now)) && len(u.recordOrders(m.Request)) == 0 &&
		m.lastCheck().Status != object.False:
		return []Action{{Type: DeleteRequest, Machine: m.subject(), Value: requestSpec(m.Request.Abort, m.Request.Hold, m.Request.HoldUntil, m.Request.HoldReason)}}
	default:
		return nil
	}
}

// settlePeriod is the minimum time for which a request is kept although its machine is healthy
// according to the log, because a MachineHealthCheck creates the request before it reports the
// machine as unhealthy.
const settlePeriod = time.Minute

// settled reports whether a time is at least settlePeriod ago. A time in the future was written
// before a clock was set back, and is settled too.
func settled(since, now time.Time) bool {
	return !now.Before(since.Add(settlePeriod)) || isFuture(since, now)
}

// forgotten reports whether the machine is healthy and its request should be deleted because it
// belongs to a remediation that the log no longer retains. It returns false for a request that a
// user created or that has orders.
func (m *Machine) forgotten(now time.Time) bool {
	r := m.Request
	return r != nil && !r.Deleting && !r.Manual && !r.Hold && !r.Abort && settled(r.Created, now) &&
		m.lastCheck().Status != object.False
}

// requestSpec returns the JSON of the spec of a request with the orders that operators wrote, or "" without orders.
func requestSpec(abort, hold bool, until time.Time, why string) string {
	const longest = 512 // of a reason
	spec := v1alpha1.SurgeRemediationSpec{Abort: abort}
	if hold {
		spec.Hold = &v1alpha1.RemediationHold{Until: v1alpha1.StatusTime(until), Reason: strings.ToValidUTF8(why[:min(len(why), longest)], "")}
	}
	if !spec.Abort && spec.Hold == nil {
		return ""
	}
	return toJSON(spec)
}

// recovered reports whether the machine is healthy, and has conditions of its remediation that nothing else removes.
func (m *Machine) recovered(u *UnhealthyMachine, s *State, now time.Time) bool {
	if u.marked() || s.activeOf(m.UID) != nil || s.creatorOf(m) != nil {
		return false // the remediation in progress removes its own requests
	}
	if m.staysUnhealthy() && m.HealthChecksPass == object.True && settled(m.lastCheck().Since, now) {
		return true
	}
	check := m.lastCheck()
	if r := m.Request; check.Status == object.False && m.OtherHealthCheck == "" && m.HealthChecksPass == object.Absent && r != nil && !r.Manual && !r.Deleting {
		return true // the MachineHealthCheck that created the request is gone, or no longer selects the machine
	}
	if check.Reason != HandOverReason && (u.UID == "" || m.OtherHealthCheck != "") {
		return false // another client may have set them, such as a MachineHealthCheck without scute's template
	}
	return check.Status == object.False && check.Reason == HandOverReason ||
		m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False ||
		m.Conditions[clusterv1.MachineExternallyRemediatedCondition].Status == object.False && (m.Request == nil || m.Request.Deleting)
}

func (m *Machine) lastCheck() Condition {
	return m.Conditions[clusterv1.MachineHealthCheckSucceededCondition]
}

// staysUnhealthy reports whether the condition HealthCheckSucceeded, set by a MachineHealthCheck
// that requests remediations from scute, may stay False although the machine has recovered. The
// MachineHealthCheck resets the condition only on a machine with a request, and creates no request
// while more machines are unhealthy than its limit (Cluster API issue 13822). Until the condition
// is reset, the owner does not count the machine as available.
func (m *Machine) staysUnhealthy() bool {
	c := m.lastCheck()
	return m.HealthChecksPass != object.Absent && m.OtherHealthCheck == "" && m.Request == nil && c.Status == object.False && c.Reason != HandOverReason
}

func stepActions(u *UnhealthyMachine, m *Machine, f *Facts) []Action {
	var actions []Action
	for _, step := range u.steps(f.Policy.Escalation) {
		wanted, there := u.marked() && u.EscalationStep == step && !u.Aborted && !m.Skip && !f.atRiskWithout(m), slices.Contains(m.StepObjects, step)
		switch {
		case wanted && !there:
			actions = append(actions, Action{Type: CreateStepObject, Machine: m.subject(), Value: step})
		case !wanted && there:
			actions = append(actions, Action{Type: DeleteStepObject, Machine: m.subject(), Value: step, Object: u.createdObject(step)})
		}
	}
	return actions
}

// atRiskWithout reports whether the control plane is at risk while the machine is unavailable. It
// returns false if that is unknown, so that the object of the escalation step is not deleted.
func (f *Facts) atRiskWithout(m *Machine) bool {
	return !Blind(f) && !f.riskOfStopping(m).none()
}

func toJSON(v any) string {
	raw, _ := json.Marshal(v) // strings and numbers cause no error
	return string(raw)
}
