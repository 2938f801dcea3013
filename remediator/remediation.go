package remediator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// remediation is the active remediation compared with one observation. The transitions of its
// states and the writes of its method use nothing else, and do not change it.
type remediation struct {
	*Active
	suspended
	state     *State
	facts     *Facts
	unhealthy *UnhealthyMachine // empty if the log no longer has the machine
	now       time.Time
	method    method

	victim *Machine // nil when it is gone
	// newMachines did not exist when the remediation started, and are not being deleted.
	newMachines []*Machine
	// stranded are the other machines of a control plane that never joined and are unhealthy.
	stranded []*Machine
	replicas int32 // of the object in which they were requested
	// deleting are the machines being deleted for which the remediation waits. Of workers, only the
	// unhealthy machine and new machines count.
	deleting []*Machine
}

func (s *State) remediation(f *Facts, now time.Time) remediation {
	a := s.Active
	r := remediation{Active: a, state: s, facts: f, unhealthy: s.record(a.Victim.UID), now: now, method: methodOf(a, f), victim: f.machine(a.Victim), replicas: a.Request.replicas(f)}
	for m := range f.all() {
		older := contains(a.Request.Baseline, m)
		switch {
		case m.Deleting:
			if f.isControlPlane() || !older || m.UID == a.Victim.UID {
				r.deleting = append(r.deleting, m)
			}
		case !older:
			r.newMachines = append(r.newMachines, m)
		}
	}
	r.stranded = slices.DeleteFunc(s.strandedMachines(f), func(m *Machine) bool { return m.UID == a.Victim.UID })
	r.suspended = r.suspension()
	return r
}

// stranded reports whether a machine never joined and is unhealthy, and its owner may be informed of that.
func (s *State) stranded(m *Machine) bool {
	return m.Node == "" && !m.Deleting && !m.Skip && !m.Paused && s.record(m.UID).isUnhealthy()
}

// strandedMachines returns the stranded machines of a control plane, and none for workers.
func (s *State) strandedMachines(f *Facts) []*Machine {
	if !f.isControlPlane() {
		return nil
	}
	return f.where(s.stranded)
}

// replicas returns the replicas of the object in which they were requested.
func (e SurgeRequested) replicas(f *Facts) int32 {
	switch n, ok := f.Cluster.Entries[e.Entry]; {
	case e.Where != AtTopology:
		return f.Owner.Replicas
	case ok && (e.Entry != "" || f.isControlPlane()):
		return n
	default:
		return f.Cluster.TopologyReplicas
	}
}

// orphaned reports whether the replicas in a Cluster's topology are raised for an owner that is
// gone or being deleted. The topology creates another owner, which would keep them. Replicas of a
// later Cluster with the same name are not scute's.
func (r remediation) orphaned() bool {
	o, c, of := r.facts.Owner, r.facts.Cluster, r.Request.Cluster
	return (of == "" || of == c.UID) && (!o.Found || o.Deleting) && c.Found && !c.Deleting && r.Request.Where == AtTopology && r.method.requesting(r)
}

func (r remediation) in(steps ...Step) bool { return slices.Contains(steps, r.Step) }

// ownerRollingOut reports whether the owner replaces machines for a reason other than the remediation.
func (r remediation) ownerRollingOut() bool {
	return r.facts.Owner.RollingOut != "" || r.facts.Cluster.UpgradePending
}

func (r remediation) isSurplus(m *Machine) bool { return contains(r.Extras, m) }

// tooMany reports whether there are more machines than users want. It returns false if another
// client has deleted a machine, because a new machine replaces that machine.
func (r remediation) tooMany() bool { return r.remainingMachines() > r.method.desiredReplicas(r) }

// remainingMachines returns the number of machines that are not being deleted, plus the deleted
// machines that their MachineSet will replace. With the strategy OnDelete, the oldest MachineSet,
// which has the unhealthy machine, loses a machine at a scale-down. All other MachineSets replace
// the machines that they lose.
func (r remediation) remainingMachines() int {
	f, n := r.facts, r.facts.remainingMachines()
	if gives := f.shrinkingSet(); f.Owner.OnDelete && r.victim != nil && r.victim.Set == gives {
		n += len(f.where(func(m *Machine) bool { return m.Deleting && m.Set != gives }))
	}
	return n
}

// mustDeleteNew reports whether new machines must be deleted when the request is undone. A rollout
// of workers creates and deletes its own machines.
func (r remediation) mustDeleteNew() bool {
	rollout := !r.facts.isControlPlane() && r.facts.Owner.RollingOut != ""
	return (r.tooMany() || r.method.requesting(r)) && !rollout && !r.committed()
}

// committed reports whether a scale-down would delete a machine of another MachineSet than the
// MachineSet of the new machine (OnDelete). Undoing the request would then not delete the new
// machine.
func (r remediation) committed() bool {
	f := r.facts
	if f.isControlPlane() || f.Owner.RollingOut != "" || len(f.Owner.Sets) == 0 {
		return false
	}
	gives := f.shrinkingSet()
	if len(r.newMachines) == 0 {
		return r.method.requesting(r) && gives != f.Owner.Sets[len(f.Owner.Sets)-1]
	}
	return slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return m.Set != gives })
}

// tooFew reports whether there are fewer machines than users want, so that the owner must create one.
func (r remediation) tooFew() bool { return r.facts.remainingMachines() < r.method.desiredReplicas(r) }

// hasSurplus reports whether there will be too many machines even without the victim.
func (r remediation) hasSurplus() bool {
	return r.remainingMachines()-boolToInt(r.victim != nil && !r.victim.Deleting) > r.method.desiredReplicas(r)
}

// filling reports whether another client deleted the victim while one more machine is requested.
// The owner may create that machine at any moment, and deletes a surplus machine as soon as it
// observes the restored replicas, so a new machine gets the delete annotation.
func (r remediation) filling() bool {
	return r.method.requesting(r) && (r.victim == nil || r.victim.Deleting) && r.facts.remainingMachines() < int(r.replicas)
}

// obstructed reports whether the owner does not delete this machine at a scale-down, because
// components of another machine are broken.
func (r remediation) obstructed(m *Machine) bool {
	return find(r.facts.Machines, func(other *Machine) bool { return other.UID != m.UID && !other.Deleting && r.facts.isBroken(other) }) != nil
}

// stuck reports whether the owner cannot delete the unhealthy machine, for one of three reasons.
// Components of another machine are broken. Another client deleted a machine, and broken components
// of the unhealthy machine prevent the owner from creating one more. Or a surplus new machine must
// be deleted first, and the unhealthy machine prevents that.
func (r remediation) stuck() bool {
	if !r.facts.isControlPlane() || r.victim == nil {
		return false
	}
	if r.obstructed(r.victim) || !r.tooMany() && r.facts.isBroken(r.victim) {
		return true
	}
	return slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return r.isSurplus(m) && m.DeleteAnnotation != "" && r.obstructed(m) })
}

// obstacle returns why an owner probably does not act, or "" if no reason is observed.
func (r remediation) obstacle() string {
	broken := r.facts.names(func(m *Machine) bool { return r.facts.isControlPlane() && r.facts.isBroken(m) })
	marked := r.facts.names(r.annotatedByOthers)
	why := ""
	if r.facts.Owner.Refused != "" {
		why += "; it reports " + r.facts.Owner.Refused
	}
	if len(broken) > 0 {
		why += "; components are unhealthy on " + strings.Join(broken, ", ")
	}
	if len(marked) > 0 {
		why += "; another client has set the annotation cluster.x-k8s.io/delete-machine on " + strings.Join(marked, ", ") + ": remove it"
	}
	return why
}

// annotatedByOthers reports whether another client wants a machine other than the victim to be deleted first.
func (r remediation) annotatedByOthers(m *Machine) bool {
	return m.DeleteAnnotation != "" && m.DeleteAnnotation != DeleteValue && m.UID != r.Victim.UID && !m.Deleting
}

// handedOver reports whether the owner is asked to remediate a machine itself, by deleting it.
func handedOver(m *Machine) bool {
	return m != nil && m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False
}

// complete reports whether the victim is replaced (ok), and returns a note about the result.
func (r remediation) complete() (note string, ok bool) {
	f := r.facts
	if r.tooMany() {
		return "", false
	}
	if r.Ready && f.machine(r.Replacement) != nil {
		return f.unevenWarning(), true
	}
	enough := !f.isControlPlane() || len(f.Machines) >= int(f.Owner.Replicas)
	if !enough || len(f.where(f.ready)) < int(f.Owner.Replicas) {
		return "", false
	}
	return cmp.Or(f.unevenWarning(), "all machines are ready"), true
}

func contains(list []Subject, m *Machine) bool {
	return slices.ContainsFunc(list, func(s Subject) bool { return s.UID == m.UID })
}
