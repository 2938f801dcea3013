package remediator

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// stopping is how long a machine that stops may still report: what says that it is off may be older than its silence by that.
const stopping = 10 * time.Minute

// SaysOff names the first of the conditions by which the policy knows that a machine is off, among those that its infrastructure machine
// has, and since when; "" without.
func (p Policy) SaysOff(conditions []metav1.Condition) (by string, since time.Time) {
	for _, off := range p.Off {
		for _, c := range conditions {
			if c.Type == off.Type && object.Truth(c.Status) == off.Status && (off.Reason == "" || c.Reason == off.Reason) {
				return fmt.Sprintf("its infrastructure machine has the condition %s %s, reason %s", c.Type, c.Status, c.Reason), c.LastTransitionTime.Time
			}
		}
	}
	return "", time.Time{}
}

// off says that the machine is off for certain. What was said of it before its Node reported last is of an earlier
// outage: its author has not looked since.
func (m *Machine) off() bool {
	return m.Off == object.True && m.silent() && !m.OffSince.Add(stopping).Before(m.Conditions[clusterv1.MachineNodeReadyCondition].Since)
}

// services says which Nodes must be out of service, and which must be in service again.
func services(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for _, u := range s.unhealthy() {
		m := f.machine(u.Subject)
		if m == nil || f.Policy.Unreadable != "" {
			continue
		}
		switch back := u.inService(m, f); {
		case u.OutOfService != "" && back != "":
			events = append(events, NodeInService{Machine: u.Subject, Why: back})
		case u.OutOfService == "" && back == "" && m.off() && !u.held(now) && f.mayBegin():
			events = append(events, NodeOutOfService{Machine: u.Subject, Node: m.Node, Why: m.OffBy})
		}
	}
	return events
}

// mayBegin says that neither a move, a pause nor a pause request keeps scute from beginning anything.
func (f *Facts) mayBegin() bool {
	return f.Move == "" && !f.Cluster.Paused && !f.Owner.Paused && !f.pauseRequested()
}

// silent says that nothing is heard of the machine's Node. That its cluster could not be reached is another thing.
func (m *Machine) silent() bool {
	ready := m.Conditions[clusterv1.MachineNodeReadyCondition]
	return m.Node != "" && ready.Status == object.Unknown && !unseen(clusterv1.MachineNodeReadyCondition, ready.Reason)
}

// inService is why the Node of a machine must not be out of service; "" when it may. It is no reason that it could not
// be determined whether the machine is off.
func (u *UnhealthyMachine) inService(m *Machine, f *Facts) string {
	ready := m.Conditions[clusterv1.MachineNodeReadyCondition].Status
	switch {
	case f.Policy.Name == "":
		return "no RepairPolicy selects the machine"
	case len(f.Policy.Off) == 0:
		return "the RepairPolicy does not ask for it"
	case f.Policy.DryRun:
		return "the RepairPolicy is a dry run"
	case m.Skip || m.Paused || u.Aborted:
		return "an operator wants the machine left alone"
	case ready == object.True || ready == object.False:
		return "its Node reports again"
	case m.Off == object.False:
		return "its infrastructure machine does not say that it is off"
	case u.Mark == nil || u.Mark.State != Unhealthy:
		return "the machine is not unhealthy"
	default:
		return ""
	}
}

// serving are the writes that make it so. A taint of scute's of which the log knows nothing is taken off.
func serving(s *State, f *Facts) []Action {
	var actions []Action
	for i := range f.Machines {
		m := &f.Machines[i]
		switch u := s.Unhealthy[m.UID]; {
		case u != nil && u.OutOfService != "":
			if m.OutOfService != outOfServiceValue {
				actions = append(actions, Action{Type: SetOutOfService, Machine: m.subject(), Value: outOfServiceValue})
			}
		case m.OutOfService != "":
			actions = append(actions, Action{Type: SetOutOfService, Machine: m.subject()})
		}
	}
	return actions
}
