package remediator

import (
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// remediation is the remediation that has been started, compared with one look at the world. The transitions of its states
// and the writes of its method see nothing else, and change none of it.
type remediation struct {
	*Active
	suspended
	facts     *Facts
	unhealthy *UnhealthyMachine // nil when the log no longer knows the machine
	now       time.Time
	method    method

	victim *Machine // nil when it is gone
	// newMachines are the new machines: they did not exist when the remediation started, and are not being deleted.
	newMachines []*Machine
	// stranded are the other machines of a control plane that never joined, and are unhealthy.
	stranded []*Machine
	// unopposed: it is being taken back, and nothing would be against it if it were a first one.
	unopposed bool
	// opposedUntil is when that will be so though nothing else changes, zero for never.
	opposedUntil time.Time
	replicas     int32 // of the object where they were asked for
	// failure is why the last write failed, and failingSince since when writes fail; "" while they succeed.
	failure      string
	failingSince time.Time
	// going are being deleted, and the remediation waits for them: of workers, the unhealthy machine and new machines.
	going []*Machine
}

func (s *State) remediation(f *Facts, now time.Time) remediation {
	a := s.Active
	r := remediation{Active: a, facts: f, unhealthy: s.Unhealthy[a.Victim.UID], now: now, method: methodOf(a, f), victim: f.machine(a.Victim), replicas: a.Request.replicas(f), failure: s.Failure, failingSince: s.FailingSince}
	for m := range f.all() {
		older := contains(a.Request.Baseline, m)
		switch {
		case m.Deleting:
			if f.isControlPlane() || !older || m.UID == a.Victim.UID {
				r.going = append(r.going, m)
			}
		case !older:
			r.newMachines = append(r.newMachines, m)
		}
	}
	r.stranded = slices.DeleteFunc(s.strandedOf(f), func(m *Machine) bool { return m.UID == a.Victim.UID })
	r.suspended = r.suspension()
	if r.takingBack() && r.by == nil {
		r.unopposed = s.unopposed(r.unhealthy, r.victim, f, now)
		if ends := r.unhealthy.heldUntil(f.Policy); !r.unopposed && ends.After(now) && s.unopposed(r.unhealthy, r.victim, f, ends) {
			r.opposedUntil = ends
		}
	}
	return r
}

// stranded says that a machine never joined and is unhealthy, and that its owner may be told so.
func (s *State) stranded(m *Machine) bool {
	u := s.Unhealthy[m.UID]
	return m.Node == "" && !m.Deleting && !m.Skip && !m.Paused && u != nil && u.Mark != nil && u.Mark.State == Unhealthy
}

// strandedOf are the machines of a control plane that are stranded; none of workers.
func (s *State) strandedOf(f *Facts) []*Machine {
	if !f.isControlPlane() {
		return nil
	}
	var stranded []*Machine
	for m := range f.all() {
		if s.stranded(m) {
			stranded = append(stranded, m)
		}
	}
	return stranded
}

// replicas of the object where they were asked for.
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

// orphaned says that replicas are raised in the topology of a Cluster, and the owner that they were raised for is gone or going. The
// topology makes another owner, which would keep them. What another Cluster of that name asks for is not ours.
func (r remediation) orphaned() bool {
	o, c, of := r.facts.Owner, r.facts.Cluster, r.Request.Cluster
	return (of == "" || of == c.UID) && (!o.Found || o.Deleting) && c.Found && !c.Deleting && r.Request.Where == AtTopology && r.method.asking(r)
}

func (r remediation) in(steps ...Step) bool { return slices.Contains(steps, r.Step) }

// rolling says that the owner replaces its machines for a reason that is not ours.
func (r remediation) rolling() bool {
	return r.facts.Owner.RollingOut != "" || r.facts.Cluster.UpgradePending
}

// extra says that a new machine is one too many.
func (r remediation) extra(m *Machine) bool { return contains(r.Extras, m) }

// tooMany says that there are more machines than users want. If another client deleted one meanwhile, there are not,
// and a new machine has its place.
func (r remediation) tooMany() bool { return r.lasting() > r.method.wanted(r) }

// lasting counts the machines that stay, and those that are made up for: with the strategy OnDelete, another MachineSet than the one that
// gives makes up for a machine that it loses, and the one that gives, which has the unhealthy machine, loses one all the same.
func (r remediation) lasting() int {
	f, n := r.facts, r.facts.staying()
	if gives := f.gives(); f.Owner.OnDelete && r.victim != nil && r.victim.Set == gives {
		for i := range f.Machines {
			n += count(f.Machines[i].Deleting && f.Machines[i].Set != gives)
		}
	}
	return n
}

// unwanted says that new machines must be deleted when the request is undone. A rollout of workers creates and deletes
// its own machines.
func (r remediation) unwanted() bool {
	rollout := !r.facts.isControlPlane() && r.facts.Owner.RollingOut != ""
	return (r.tooMany() || r.method.asking(r)) && !rollout && !r.committed()
}

// committed says that the new machine is, or will be, of another MachineSet than the one that loses a machine when
// there is one too many (OnDelete). To undo the request deletes a machine of that one, and not the new machine.
func (r remediation) committed() bool {
	f := r.facts
	if f.isControlPlane() || f.Owner.RollingOut != "" || len(f.Owner.Sets) == 0 {
		return false
	}
	gives := f.gives()
	if len(r.newMachines) == 0 {
		return r.method.asking(r) && gives != f.Owner.Sets[len(f.Owner.Sets)-1]
	}
	return slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return m.Set != gives })
}

// short says that there are fewer machines than people want: the owner is to make one.
func (r remediation) short() bool { return r.facts.staying() < r.method.wanted(r) }

// surplus says that there will be too many machines even without the victim.
func (r remediation) surplus() bool {
	return r.lasting()-count(r.victim != nil && !r.victim.Deleting) > r.method.wanted(r)
}

// filling says that somebody deleted the victim while the owner is asked for one more. The owner makes another machine
// at any moment, and deletes a surplus one as soon as it observes the replicas: a new machine is marked for that.
func (r remediation) filling() bool {
	return r.method.asking(r) && (r.victim == nil || r.victim.Deleting) && r.facts.staying() < int(r.replicas)
}

// obstructed says that the owner does not scale down to this machine, as components of another one are not well.
func (r remediation) obstructed(m *Machine) bool {
	return slices.ContainsFunc(r.facts.Machines, func(other Machine) bool {
		return other.UID != m.UID && !other.Deleting && len(other.broken(r.facts.Owner.ExternalEtcd)) > 0
	})
}

// stuck says that the owner cannot delete the unhealthy machine. Another machine is unhealthy too; or another client
// deleted a machine, and the unhealthy machine, which broke meanwhile, prevents the owner from creating one more; or a
// surplus new machine has to be deleted first, and cannot, because of the unhealthy machine.
func (r remediation) stuck() bool {
	if !r.facts.isControlPlane() || r.victim == nil {
		return false
	}
	if r.obstructed(r.victim) || !r.tooMany() && len(r.victim.broken(r.facts.Owner.ExternalEtcd)) > 0 {
		return true
	}
	return slices.ContainsFunc(r.newMachines, func(m *Machine) bool { return r.extra(m) && m.DeleteMark != "" && r.obstructed(m) })
}

// obstacle says why an owner probably does not act; "" when nothing is seen.
func (r remediation) obstacle() string {
	var broken, marked []string
	for m := range r.facts.all() {
		if r.facts.isControlPlane() && len(m.broken(r.facts.Owner.ExternalEtcd)) > 0 {
			broken = append(broken, m.Name)
		}
		if r.markedByOthers(m) {
			marked = append(marked, m.Name)
		}
	}
	why := ""
	if r.facts.Owner.Refused != "" {
		why += "; it says " + r.facts.Owner.Refused
	}
	if len(broken) > 0 {
		why += "; components are not well on " + strings.Join(broken, ", ")
	}
	if len(marked) > 0 {
		why += "; somebody has marked " + strings.Join(marked, ", ") + " to be deleted first (cluster.x-k8s.io/delete-machine): take that annotation off"
	}
	return why
}

// markedByOthers says that somebody else wants a machine other than the victim to be deleted first.
func (r remediation) markedByOthers(m *Machine) bool {
	return m.DeleteMark != "" && m.DeleteMark != DeleteValue && m.UID != r.Victim.UID && !m.Deleting
}

// handedOver says that the owner is asked to remediate a machine itself, which deletes it.
func handedOver(m *Machine) bool {
	return m != nil && m.Conditions[clusterv1.MachineOwnerRemediatedCondition].Status == object.False
}

// complete says that the place of the victim is taken, and by what; ok is false while it is not.
func (r remediation) complete() (note string, ok bool) {
	f := r.facts
	if r.tooMany() {
		return "", false
	}
	if r.Ready && f.machine(r.Replacement) != nil {
		return f.uneven(), true
	}
	ready := 0
	for i := range f.Machines {
		if f.ready(&f.Machines[i]) {
			ready++
		}
	}
	enough := !f.isControlPlane() || len(f.Machines) >= int(f.Owner.Replicas)
	if !enough || ready < int(f.Owner.Replicas) {
		return "", false
	}
	if note = f.uneven(); note == "" {
		note = "all machines are ready"
	}
	return note, true
}

func contains(list []Subject, m *Machine) bool {
	return slices.ContainsFunc(list, func(s Subject) bool { return s.UID == m.UID })
}
