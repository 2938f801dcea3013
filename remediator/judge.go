package remediator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/view"
)

// HandOverReason is the reason of a condition HealthCheckSucceeded that scute itself sets to False,
// to hand a machine over to its owner. Judge ignores such a condition.
const HandOverReason = "MarkedByScute"

// Health represents the health of a machine as the mark that the machine should have. State is ""
// if the machine is healthy. Since is zero if it is unknown.
type Health struct {
	MachineMarked
	// Remaining is the time until a failing check makes the machine unhealthy or, for a healthy
	// machine, until a check may fail.
	Remaining time.Duration
}

func healthOf(state markState, source source, reason string, since time.Time) Health {
	return Health{MachineMarked: MachineMarked{State: state, Source: source, Reason: reason, Since: since}}
}

// Judge returns the health of a machine, and does not decide how to respond. mark is the mark of
// the machine in the log, or the zero value. The mark contains the times at which scute first
// observed the failing conditions of the Node.
func Judge(m *Machine, mark MachineMarked, c Checks, now time.Time) Health {
	if m.Remediate {
		return healthOf(Unhealthy, FromOperator, "annotation "+clusterv1.RemediateMachineAnnotation, time.Time{})
	}
	if m.Exempt {
		says, _ := healthCheck(m) // a request that was made before the exemption is still valid
		return says
	}
	var worst Health
	all, seen := policyChecks(m, mark, c, now), map[string]time.Time(nil)
	for _, check := range c.Node {
		if h, fails := check.checkNode(m, mark, now); fails {
			all = append(all, h)
			put(&seen, h.Reason, h.Since)
		}
	}
	for _, n := range c.Notices {
		h, there := n.health(m, mark, now)
		if !there {
			continue
		}
		all = append(all, h)
		if n.onNode() {
			put(&seen, h.Reason, h.Since)
		}
	}
	for _, h := range all {
		switch {
		case h.State == "":
			if worst.State == "" && (worst.Remaining == 0 || h.Remaining < worst.Remaining) {
				worst = h
			}
		case worst.State == "", h.State == Unhealthy && worst.State == Failing, h.State == worst.State && h.Remaining < worst.Remaining:
			worst = h
		}
	}
	still := mark.State == Unhealthy && mark.Source == FromPolicy && worst.State == Unhealthy && worst.Source == FromPolicy
	if says, checked := healthCheck(m); checked && !still { // a MachineHealthCheck's result counts unless the policy's checks found the machine unhealthy first
		return says
	}
	for _, h := range all { // another check, for example of the startup, may make the machine unhealthy sooner
		if worst.State == Failing && h.Remaining > 0 {
			worst.Remaining = min(worst.Remaining, h.Remaining)
		}
	}
	worst.FailingSince = seen
	worst.Failing = worst.Source == FromNotice && slices.ContainsFunc(all, func(h Health) bool { return h.State != "" && h.Source != FromNotice })
	return worst
}

// updateMarks returns the events for machines that have become unhealthy, whose mark has changed,
// or that are no longer unhealthy.
func updateMarks(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for m := range f.all() {
		if m.Deleting || f.Policy.Name == "" || f.Policy.Unreadable != "" || !f.Owner.Found {
			continue // without a readable policy it is unknown which machines are unhealthy, so marks stay
		}
		u := s.record(m.UID)
		h := Judge(m, u.Mark, f.Policy.Checks, now)
		switch {
		case h.State == "" && u.marked():
			why := "the machine is healthy again"
			if u.hasNotice() {
				why = "the notice is gone"
			}
			events = append(events, MachineMarkCleared{Machine: m.subject(), Cause: Recovered, Reason: why})
		case h.State != "" && !u.matches(h):
			h.Machine, h.Since, h.FailureDomain = m.subject(), cmp.Or(h.Since, now), f.domain(m.FailureDomain)
			events = append(events, h.MachineMarked)
		}
	}
	for _, u := range s.unhealthy() {
		if !u.marked() || s.activeOf(u.UID) != nil && f.Policy.Name != "" {
			continue // the remediation itself records its end
		}
		switch m := f.machine(u.Subject); {
		case f.Policy.Name == "":
			events = append(events, MachineMarkCleared{Machine: u.Subject, Cause: Deselected, Reason: "no RepairPolicy selects the machine"})
		case m == nil:
			events = append(events, MachineMarkCleared{Machine: u.Subject, Cause: MachineGone, Reason: "the machine is gone"})
		}
	}
	return events
}

// matches reports whether the recorded mark equals the present health, except for Since.
func (u *UnhealthyMachine) matches(h Health) bool {
	mark := u.Mark
	return mark.State == h.State && mark.Reason == h.Reason && mark.Source == h.Source &&
		mark.Failing == h.Failing && maps.EqualFunc(mark.FailingSince, h.FailingSince, time.Time.Equal)
}

func (u *UnhealthyMachine) marked() bool { return u.Mark.State != "" }

// isUnhealthy reports whether the machine is marked as unhealthy, and not only as failing a check
// whose timeout has not expired.
func (u *UnhealthyMachine) isUnhealthy() bool { return u.Mark.State == Unhealthy }

// healthCheck returns the result of a MachineHealthCheck for a machine. ok is false if there is
// none. A result without a request is ignored, because a MachineHealthCheck that created no request
// never resets its condition. So is the result of a MachineHealthCheck that was deleted or no
// longer selects the machine.
func healthCheck(m *Machine) (Health, bool) {
	c := m.Conditions[clusterv1.MachineHealthCheckSucceededCondition]
	if c.Status != object.False || c.Reason == HandOverReason || m.Request == nil || m.Request.Deleting ||
		m.HealthChecksPass == object.Absent && m.OtherHealthCheck == "" && !m.Request.Manual {
		return Health{}, false
	}
	return healthOf(Unhealthy, FromHealthCheck, c.Reason, c.Since), true
}

// policyChecks returns the results of those checks of the policy that read the Machine. They do not
// depend on a MachineHealthCheck, which stops at the first request that it finds, and may detect a
// second unhealthy machine minutes later.
func policyChecks(m *Machine, mark MachineMarked, c Checks, now time.Time) []Health {
	if ready := m.Conditions[clusterv1.MachineNodeReadyCondition]; ready.Status == object.False && ready.Reason == clusterv1.MachineNodeDeletedReason && !m.Deleting && c.enabled() {
		return []Health{healthOf(Unhealthy, FromPolicy, "Node deleted", ready.Since)}
	}
	all := c.checkStartup(m, mark, now)
	look := func(label, condition string, check Check) {
		seen, ok := m.Conditions[condition]
		if !ok || seen.Status != check.Status || nodeUnreadable(condition, seen.Reason) {
			return
		}
		h := healthOf(Failing, FromPolicy, fmt.Sprintf("%s %s", label, check.Status), time.Time{})
		since, over := mark.timeoutStart(h.Reason, seen.Since, now)
		since = mark.failingSince(label, since, check.Timeout)
		h.Since, h.Remaining = since, since.Add(check.Timeout).Sub(now)
		if h.Remaining <= 0 || over {
			h.State, h.Remaining = Unhealthy, 0
		}
		all = append(all, h)
	}
	for _, check := range c.Machine {
		look(check.Type, check.Type, check)
	}
	for _, check := range c.Node {
		if check.Type == nodeReady && m.Node != "" {
			look("Node Ready", clusterv1.MachineNodeReadyCondition, check)
		}
	}
	return all
}

// checkStartup returns the result of the startup check, which fails if a machine has no Node after
// the startup timeout.
func (c Checks) checkStartup(m *Machine, mark MachineMarked, now time.Time) []Health {
	if m.Node != "" || c.NodeStartup <= 0 {
		return nil
	}
	h := healthOf(Unhealthy, FromPolicy, "no Node after "+view.Duration(c.NodeStartup), time.Time{})
	since, over := mark.timeoutStart(h.Reason, m.startupFrom(), now)
	h.Since = since.Add(c.NodeStartup)
	switch left := h.Since.Sub(now); {
	case over:
		h.Since = since
	case left > 0 && since.Equal(m.startupFrom()):
		return []Health{{Remaining: left}} // still starting
	case left > 0:
		h.State, h.Since, h.Remaining = Failing, since, left
	}
	return []Health{h}
}

// startupFrom returns the time from which the startup timeout counts: the machine's creation, or
// Startup if that is later.
func (m *Machine) startupFrom() time.Time {
	return later(m.Startup, m.Created)
}

func (c Checks) enabled() bool { return c.NodeStartup > 0 || len(c.Machine) > 0 || len(c.Node) > 0 }

// timeoutStart returns the time from which a condition's timeout counts, normally the argument
// since. If that time is in the future, because a clock was set back, it returns the time that the
// log records for the same reason, or now if the log has none. over reports whether the log already
// records the machine as unhealthy at that time.
func (mark MachineMarked) timeoutStart(reason string, since, now time.Time) (from time.Time, over bool) {
	switch {
	case !isFuture(since, now):
		return since, false
	case mark.Reason == reason && !mark.Since.After(now):
		return mark.Since, mark.State == Unhealthy
	default:
		return now, false
	}
}

// failingSince returns the time since which a condition has failed a check of the policy. That is
// the time in the log, if the same condition failed then with any status, because a Node may
// alternate between False and Unknown, and some agents update the time with each reason. If the
// time in the log precedes since by more than the check's timeout, it returns since, because the
// condition may have been true in between.
func (mark MachineMarked) failingSince(condition string, since time.Time, timeout time.Duration) time.Time {
	if mark.Source != FromPolicy || !mark.Since.Before(since) || since.Sub(mark.Since) > timeout {
		return since
	}
	for _, status := range []object.ConditionStatus{object.True, object.False, object.Unknown} {
		if mark.Reason == condition+" "+string(status) {
			return mark.Since
		}
	}
	return since
}

// nodeUnreadable reports whether a condition of the Machine means that Cluster API could not read
// the node. The node's health is then unknown.
func nodeUnreadable(condition, reason string) bool {
	return condition == clusterv1.MachineNodeReadyCondition &&
		(reason == clusterv1.MachineNodeConnectionDownReason || reason == clusterv1.MachineNodeInspectionFailedReason || reason == clusterv1.MachineNodeInternalErrorReason)
}

// brokenComponents returns the components of a control plane machine that are not known to be
// healthy. If the Node has stopped reporting, it includes every component that runs in a pod. The
// owner reports the same, but only at its next reconcile. A decision in between would choose a
// surge, which the owner would then refuse.
func (m *Machine) brokenComponents(externalEtcd bool) []string {
	var names []string
	ready := m.Conditions[clusterv1.MachineNodeReadyCondition]
	silent := ready.Status == object.Unknown && !nodeUnreadable(clusterv1.MachineNodeReadyCondition, ready.Reason)
	for _, c := range components {
		if externalEtcd && c.etcd {
			continue
		}
		if m.Conditions[c.condition].Status != object.True || silent && c.pod {
			names = append(names, c.name)
		}
	}
	return names
}

// isBroken reports whether a component of a control plane machine is not known to be healthy.
func (f *Facts) isBroken(m *Machine) bool { return len(m.brokenComponents(f.Owner.ExternalEtcd)) > 0 }

func (f *Facts) ready(m *Machine) bool {
	if m.Deleting || m.Node == "" || m.Conditions[clusterv1.MachineNodeReadyCondition].Status != object.True {
		return false
	}
	return !f.isControlPlane() || !f.isBroken(m)
}

type component struct {
	name, condition string
	etcd, pod       bool
}

const (
	apiServer  = "kube-apiserver"
	etcdMember = "etcd member"
)

// components contains the components of a control plane machine whose conditions the owner sets.
var components = []component{
	{apiServer, controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition, false, true},
	{"kube-controller-manager", controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition, false, true},
	{"kube-scheduler", controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition, false, true},
	{"etcd", controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, true, true},
	{etcdMember, controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition, true, false},
}

func (f *Facts) machine(m Subject) *Machine {
	return find(f.Machines, func(x *Machine) bool { return x.UID == m.UID })
}

func (m *Machine) subject() Subject { return Subject{Name: m.Name, UID: m.UID} }

func (f *Facts) isControlPlane() bool { return OwnerKind(f.Owner.Kind).IsControlPlane() }
