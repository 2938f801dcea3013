package remediator

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/kube/object"
)

// guarding keeps on each machine of a guarded control plane why etcd cannot spare it. The chart's ValidatingAdmissionPolicy refuses that people
// delete such a machine. While the members of etcd are not asked, or cannot be, what they said last stays.
func guarding(f *Facts) []Action {
	known := f.Owner.ExternalEtcd || len(f.Machines) == 1 || f.Cluster.Reach == object.True && Count(f.Etcd).Voters > 0
	if f.Policy.Unreadable != "" || f.Policy.Guards && !known {
		return nil
	}
	var actions []Action
	for i := range f.Machines {
		m := &f.Machines[i]
		if why := f.needs(m); why != m.Needed && !m.Deleting {
			actions = append(actions, Action{Type: SetNeeded, Machine: m.subject(), Value: why})
		}
	}
	return actions
}

// needs says why etcd cannot spare a machine now, "" where it can, or where nobody asks.
func (f *Facts) needs(m *Machine) string {
	if !f.Policy.Guards || !f.isControlPlane() || f.Owner.ExternalEtcd || !f.Owner.Found || f.Owner.Deleting || f.Cluster.Deleting || f.starting() {
		return ""
	}
	alive, member := f.votes(m)
	q := Count(f.Etcd)
	going := slices.IndexFunc(f.Machines, func(other Machine) bool { return other.Deleting })
	switch {
	case len(f.Machines) == 1:
		return "it is the only machine of the control plane, and etcd's data are on it"
	case member && q.Lost():
		return fmt.Sprintf("only %d of the %d members of etcd answer: its quorum is lost, and this one may bring it back", q.Answering, q.Voters)
	case member && !q.MayRemove(alive):
		return fmt.Sprintf("%d of the %d members of etcd answer: without this one it would lose its quorum", q.Answering, q.Voters)
	case going >= 0 && alive:
		return "machine " + f.Machines[going].Name + " is being deleted: no other member of etcd may leave before it is gone"
	default:
		return ""
	}
}

// guardPace is how often etcd is asked, at least, for the sake of the guard; 0 for never. A machine that was needed may be spared, and the
// control plane's controller may find a member not healthy.
func (f *Facts) guardPace() time.Duration {
	const often, seldom = 30 * time.Second, time.Minute
	switch {
	case !f.Policy.Guards || len(f.Machines) < 2:
		return 0
	case f.leaving() > 0 || slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Needed != "" || m.Node != "" && m.etcdSuspect() }):
		return often
	default:
		return seldom
	}
}

// etcdSuspect reports whether the control plane's controller finds the etcd of the machine not healthy.
func (m *Machine) etcdSuspect() bool {
	return slices.ContainsFunc(m.broken(false), func(name string) bool { return name == etcdPod || name == etcdMember })
}
