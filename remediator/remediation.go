package remediator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// remediation contains the active remediation, one observation, and what follows from comparing
// them. It is the only input of transitions and of methods, which do not change it.
type remediation struct {
	*Active
	suspended
	state     *State
	facts     *Facts
	unhealthy *UnhealthyMachine // empty if the log no longer has the machine
	now       time.Time
	method    method

	victim *Machine // nil when it is gone
	// newMachines contains the machines that did not exist when the remediation started and are not
	// being deleted.
	newMachines []*Machine
	// stranded contains the machines of a control plane, except the victim, that never joined and
	// are unhealthy.
	stranded []*Machine
	replicas int32 // current value in the object in which replicas were requested
	// deleting contains the machines being deleted for which the remediation waits: all of a
	// control plane, but only the victim and new machines of an owner of workers.
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

// stranded reports whether a machine never joined and is unhealthy, and its owner may be asked to remediate it.
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

// replicas returns the current replicas in the object in which the surge requested them.
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

// orphaned reports whether the replicas in a Cluster's topology are still raised for an owner that
// is gone or being deleted. The topology creates another owner, which would keep the raised
// replicas. orphaned returns false for a later Cluster with the same name, whose replicas scute did
// not raise.
func (r remediation) orphaned() bool {
	o, c, of := r.facts.Owner, r.facts.Cluster, r.Request.Cluster
	return (of == "" || of == c.UID) && (!o.Found || o.Deleting) && c.Found && !c.Deleting && r.Request.Where == AtTopology && r.method.requesting(r)
}

func (r remediation) in(steps ...Step) bool { return slices.Contains(steps, r.Step) }

// ownerRollingOut reports whether the owner is replacing machines, or is about to, for a reason
// other than the remediation.
func (r remediation) ownerRollingOut() bool {
	return r.facts.Owner.RollingOut != "" || r.facts.Cluster.UpgradePending
}

func (r remediation) isSurplus(m *Machine) bool { return contains(r.Extras, m) }

// tooMany reports whether there are more machines than users want. After another client has deleted
// a machine, it returns false, because the new machine takes the place of the deleted one.
func (r remediation) tooMany() bool { return r.remainingMachines() > r.method.desiredReplicas(r) }

// remainingMachines returns the number of machines that are not being deleted, plus those being
// deleted that their MachineSet will replace. With the strategy OnDelete, only the oldest
// MachineSet, which contains the victim, does not replace a machine that it loses.
func (r remediation) remainingMachines() int {
	f, n := r.facts, r.facts.remainingMachines()
	if gives := f.shrinkingSet(); f.Owner.OnDelete && r.victim != nil && r.victim.Set == gives {
		n += len(f.where(func(m *Machine) bool { return m.Deleting && m.Set != gives }))
	}
	return n
}

// mustDeleteNew reports whether new machines must be deleted when the request is undone. It returns
// false during a rollout of workers, which creates and deletes machines itself.
func (r remediation) mustDeleteNew() bool {
	rollout := !r.facts.isControlPlane() && r.facts.Owner.RollingOut != ""
	return (r.tooMany() || r.method.requesting(r)) && !rollout && !r.committed()
}

// committed reports whether undoing the request would delete an older machine instead of the new
// one, because with the strategy OnDelete a scale-down deletes machines of a different MachineSet
// than that of the new machine.
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

// hasSurplus reports whether there would be too many machines even without the victim.
func (r remediation) hasSurplus() bool {
	return r.remainingMachines()-boolToInt(r.victim != nil && !r.victim.Deleting) > r.method.desiredReplicas(r)
}

// filling reports whether the victim is gone or being deleted while one more machine is still
// requested and does not exist. The owner may create that machine at any moment. It would then
// delete a surplus machine when it observes the restored replicas, so a new machine must get the
// delete annotation first.
func (r remediation) filling() bool {
	return r.method.requesting(r) && (r.victim == nil || r.victim.Deleting) && r.facts.remainingMachines() < int(r.replicas)
}

// obstructed reports whether the owner does not delete this machine at a scale-down, because
// components of another machine are broken.
func (r remediation) obstructed(m *Machine) bool {
	return find(r.facts.Machines, func(other *Machine) bool { return other.UID != m.UID && !other.Deleting && r.facts.isBroken(other) }) != nil
}

// stuck reports whether the owner cannot delete the victim, for one of three reasons: components of
// another machine are broken; another client deleted a machine, and broken components of the victim
// keep the owner from creating one more; or a surplus new machine must be deleted first, and broken
// components of the victim or another machine prevent that.
func (r remediation) stuck() bool {
	if !r.facts.isControlPlane() || r.victim == nil {
		return false
	}
	if r.obstructed(r.victim) || !r.tooMany() && r.facts.isBroken(r.victim) {
		return true
	}
	return slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return r.isSurplus(m) && m.DeleteAnnotation != "" && r.obstructed(m) })
}

// obstacle returns the probable reasons why the owner does not act, or "" if none is observed.
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

// annotatedByOthers reports whether a machine other than the victim has the delete annotation of another client.
func (r remediation) annotatedByOthers(m *Machine) bool {
	return m.DeleteAnnotation != "" && m.DeleteAnnotation != DeleteValue && m.UID != r.Victim.UID && !m.Deleting
}

// handedOver reports whether the owner is asked to remediate a machine itself, by deleting it.
func handedOver(m *Machine) bool {
	return m != nil && m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False
}

// complete reports whether the replacement is complete (ok). The note is part of the result that
// users read, or "".
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
