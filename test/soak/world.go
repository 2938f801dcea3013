package soak

import (
	"fmt"
	"slices"
	"time"
)

// World has the effects of the faults so far. Machines are identified by their names, which are never reused and
// survive a move. It is not safe for concurrent use.
type World struct {
	machines map[string]*illness
	clusters map[string]*record
}

// illness records the faults of a machine.
type illness struct {
	on      int // number of active faults
	until   time.Time
	deleted bool // by a user
}

// record has the state of a cluster.
type record struct {
	disaster  int  // active faults that stop a majority
	recovers  bool // the quorum has not been seen since a disaster
	rolled    time.Time
	version   string
	surplus   int       // machines that a user has scaled away and that are not yet deleted
	wanted    int       // machines after that
	most      int       // highest number of machines that a user requested
	shrunk    time.Time // when no more than wanted existed
	everVoted map[string]bool
}

func (w *World) machine(name string) *illness {
	if w.machines == nil {
		w.machines = map[string]*illness{}
	}
	if w.machines[name] == nil {
		w.machines[name] = &illness{}
	}
	return w.machines[name]
}

func (w *World) cluster(name string) *record {
	if w.clusters == nil {
		w.clusters = map[string]*record{}
	}
	if w.clusters[name] == nil {
		w.clusters[name] = &record{everVoted: map[string]bool{}}
	}
	return w.clusters[name]
}

// BeginFault records that a fault begins on a machine.
func (w *World) BeginFault(machine string) { w.machine(machine).on++ }

// EndFault records that a fault on a machine is reverted.
func (w *World) EndFault(machine string, at time.Time) {
	m := w.machine(machine)
	m.on, m.until = max(0, m.on-1), at
}

// HasFault reports whether the machine has an active fault.
func (w *World) HasFault(machine string) bool { return w.machine(machine).on > 0 }

// Delete records that a user deletes the machine.
func (w *World) Delete(machine string) { w.machine(machine).deleted = true }

// Roll records that all machines of the control plane that were created before must be replaced, and all with another
// version if version is not "".
func (w *World) Roll(cluster string, at time.Time, version string) {
	c := w.cluster(cluster)
	c.rolled = at
	if version != "" {
		c.version = version
	}
}

// Scale records that a user scales the control plane.
func (w *World) Scale(cluster string, from, to int) {
	c := w.cluster(cluster)
	c.surplus, c.wanted, c.shrunk = max(0, from-to), to, time.Time{}
	c.most = max(c.most, from, to)
}

// spare is how many machines a control plane may have in addition to the requested ones: two of a surge, because
// replicas must be odd with stacked etcd, and one of a rollout.
const spare = 3

// Crowd checks an invariant: a control plane has at most the highest number of machines that was requested, plus those
// of a surge and a rollout. asked is the number at the beginning.
func (w *World) Crowd(cluster string, machines, asked int) error {
	if most := max(asked, w.cluster(cluster).most) + spare; machines > most {
		return fmt.Errorf("crowd: %s has %d control plane machines; %d are the most that were asked for, with a surge and a rollout", cluster, machines, most)
	}
	return nil
}

// Counted records the number of machines of the control plane. Machines that are deleted after all surplus ones are
// gone do not count as scaled away.
func (w *World) Counted(cluster string, machines int, at time.Time) {
	if c := w.cluster(cluster); c.surplus > 0 && c.shrunk.IsZero() && machines <= c.wanted {
		c.shrunk = at
	}
}

// Lingers records that a machine is still seen as unhealthy after its fault, because servers were down or have not
// checked it again.
func (w *World) Lingers(machine string, at time.Time) {
	if m := w.machine(machine); !m.until.IsZero() {
		m.until = at
	}
}

// Disaster records that a majority of the cluster's members is about to be stopped, or is restored.
func (w *World) Disaster(cluster string, on bool) {
	c := w.cluster(cluster)
	if on {
		c.disaster++
	} else {
		c.disaster--
	}
	c.recovers = true
}

// Spared reports whether a control plane with these voters and answering members keeps its quorum if one more becomes
// silent. Only disasters stop a member if it does not, so other faults never cost the quorum.
func Spared(voters, answering int) bool { return answering-1 >= voters/2+1 }

// Member is a member of a workload cluster's etcd, as the cloud reports it.
type Member struct {
	ID      string
	Answers bool
}

// Quorum checks the first invariant: a majority of the voters answers, except during a disaster and until the quorum
// was seen again. A member that never answered is a learner. It returns the numbers of voters and of answering members.
func (w *World) Quorum(cluster string, members []Member) (voters, answering int, err error) {
	c := w.cluster(cluster)
	for _, m := range members {
		if m.Answers {
			c.everVoted[m.ID] = true
			answering++
		}
		if c.everVoted[m.ID] {
			voters++
		}
	}
	switch {
	case voters == 0, answering >= voters/2+1:
		c.recovers = c.recovers && c.disaster > 0
		return voters, answering, nil
	case c.disaster > 0 || c.recovers:
		return voters, answering, nil
	default:
		return voters, answering, fmt.Errorf("quorum: %s has lost it: %d of %d members answer, and the faults alone leave a majority", cluster, answering, voters)
	}
}

// Removal is a deletion of a machine in the cloud's journal.
type Removal struct {
	Machine, Cluster string
	At               time.Time
}

// KnownMachine is what was known about a machine before its deletion.
type KnownMachine struct {
	ControlPlane bool
	Created      time.Time
	Version      string
}

// Remedy is a remediation in the log, in which the owner replaces Victim. Baseline are the machines that existed at its
// beginning.
type Remedy struct {
	Cluster, Victim string
	Baseline        []string
	Begun           time.Time
	Ended           time.Time // zero while it is in progress
	// Spurious means that the victim had no fault when the remediation began. This is not in the log.
	Spurious bool `json:"-"`
}

// under reports whether the remediation was in progress at a time, or had ended shortly before.
func (r Remedy) under(at time.Time) bool {
	return !at.Before(r.Begun) && (r.Ended.IsZero() || at.Before(r.Ended.Add(lag)))
}

// lag is how long after the end of a fault scute or the owner may still react to it, because they read servers that are
// killed and restarted.
const lag = 45 * time.Second

// ShouldBeUnhealthy reports whether a remediation of a machine is justified at a time: a fault is active, or ended
// shortly before.
func (w *World) ShouldBeUnhealthy(machine string, at time.Time) bool {
	m := w.machine(machine)
	return m.on > 0 || !m.until.IsZero() && at.Before(m.until.Add(lag))
}

// Removed checks the second invariant: no healthy machine is deleted unless a user requested it. It returns the reason
// for the deletion.
func (w *World) Removed(r Removal, v KnownMachine, remedies []Remedy) (why string, err error) {
	m, c := w.machine(r.Machine), w.cluster(r.Cluster)
	for _, remedy := range remedies {
		if remedy.Victim == r.Machine && !remedy.Spurious && remedy.under(r.At) {
			return "remediation", nil
		}
	}
	outdated := c.version != "" && v.Version != c.version
	switch {
	case m.deleted:
		return "by hand", nil
	case w.ShouldBeUnhealthy(r.Machine, r.At):
		return "remediation", nil
	case v.ControlPlane && c.rolled.After(v.Created), outdated:
		return "rollout", nil
	case v.ControlPlane && c.surplus > 0 && (c.shrunk.IsZero() || !r.At.After(c.shrunk)):
		c.surplus--
		return "scaled", nil
	}
	for _, remedy := range remedies {
		if remedy.Cluster == r.Cluster && remedy.under(r.At) && !slices.Contains(remedy.Baseline, r.Machine) {
			return "taken back", nil
		}
	}
	return "", fmt.Errorf("machine %s of %s was removed at %s; it was healthy, and nobody asked for that", r.Machine, r.Cluster, r.At.UTC().Format("15:04:05.000"))
}
