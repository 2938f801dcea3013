package remediator

import (
	"slices"
	"time"

	"scute.dev/kube/object"
)

// guardActions returns the writes that set the annotation scute.dev/needed of each machine of a
// guarded control plane to the reason why etcd cannot spare the machine, or remove it. The chart's
// ValidatingAdmissionPolicy forbids users to delete a machine with the annotation. If the members
// of etcd were not queried or did not answer, nothing is written. An existing annotation is changed
// at the earliest 5 seconds after the request to etcd before the last one. Each change causes an
// observation, so a member that answers only intermittently would otherwise cause an endless series
// of observations.
func guardActions(f *Facts, now time.Time) []Action {
	single := len(f.Machines) == 1
	known := single || f.Cluster.Reachable == object.True && Count(f.Etcd).Voters > 0
	settled := single || !now.Before(f.EtcdRequests.Before.Add(5*time.Second))
	var actions []Action
	for m := range f.all() {
		why := ""
		if f.guardEnabled() {
			if why = f.neededReason(m); !known || m.Needed != "" && !settled {
				continue
			}
		}
		if why != m.Needed && !m.Deleting {
			actions = append(actions, Action{Type: SetNeeded, Machine: m.subject(), Value: why})
		}
	}
	return actions
}

// Guarded reports whether a machine of the owner has the annotation scute.dev/needed, which only
// scute removes.
func Guarded(f *Facts) bool {
	return slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Needed != "" && !m.Deleting })
}

// guardEnabled reports whether the owner is a guarded control plane, whose machines may get the
// annotation.
func (f *Facts) guardEnabled() bool {
	return f.Policy.GuardsMachines && f.isControlPlane() && !f.Owner.ExternalEtcd && f.Owner.Found && !f.Owner.Deleting && !f.Cluster.Deleting && !f.isInitializing()
}

// neededReason returns why etcd cannot spare a machine now, or "".
func (f *Facts) neededReason(m *Machine) string {
	alive, member := f.votes(m)
	q := Count(f.Etcd)
	switch going := f.firstDeleting(); {
	case len(f.Machines) == 1:
		return "it is the only machine of the control plane, and has the data of etcd"
	case member && q.Lost():
		return "etcd has lost its quorum, and this machine may restore it"
	case member && !q.MayRemove(alive):
		return "too few members of etcd answer: without this machine, etcd would lose its quorum"
	case going != nil && alive:
		return "machine " + going.Name + " is being deleted: no other member of etcd may be removed before it is gone"
	default:
		return ""
	}
}

// guardInterval returns the longest permitted interval between two requests to etcd for the guard,
// or 0 if the guard needs none.
func (f *Facts) guardInterval() time.Duration {
	switch {
	case !f.guardEnabled() || f.Cluster.Paused || f.Policy.DryRun || len(f.Machines) < 2:
		return 0
	case f.EtcdRequests.Blind: // a request takes longest then, and returns nothing
		return 10 * time.Minute
	case f.deletingMachines() > 0:
		return 10 * time.Second
	case Guarded(f):
		return 30 * time.Second
	default:
		return 2 * time.Minute
	}
}
