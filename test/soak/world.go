package soak

import (
	"fmt"
	"slices"
	"time"
)

// World is what the faults have done so far. Machines are known by their names, which are never used twice and survive a
// move. It is not for concurrent use.
type World struct {
	machines map[string]*illness
	clusters map[string]*record
}

// illness of a machine: what is wrong with it, and since or until when.
type illness struct {
	on      int // faults
	until   time.Time
	deleted bool // by hand
}

// record of a cluster.
type record struct {
	disaster  int  // faults that take a majority, on
	recovers  bool // from one: quorum was not seen since
	rolled    time.Time
	version   string
	surplus   int       // machines that somebody has scaled away, not yet seen to be removed
	wanted    int       // machines after that
	most      int       // machines that somebody ever asked for
	shrunk    time.Time // when no more than those were there
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

// BeginFault: a fault begins on a machine.
func (w *World) BeginFault(machine string) { w.machine(machine).on++ }

// EndFault: a fault on a machine is undone.
func (w *World) EndFault(machine string, at time.Time) {
	m := w.machine(machine)
	m.on, m.until = max(0, m.on-1), at
}

// HasFault says whether a fault is on for the machine.
func (w *World) HasFault(machine string) bool { return w.machine(machine).on > 0 }

// Delete: somebody deletes the machine by hand.
func (w *World) Delete(machine string) { w.machine(machine).deleted = true }

// Roll: all machines of the control plane made before must be replaced, and all of another version, if it is not "".
func (w *World) Roll(cluster string, at time.Time, version string) {
	c := w.cluster(cluster)
	c.rolled = at
	if version != "" {
		c.version = version
	}
}

// Scale: somebody has the control plane grow, or shrink.
func (w *World) Scale(cluster string, from, to int) {
	c := w.cluster(cluster)
	c.surplus, c.wanted, c.shrunk = max(0, from-to), to, time.Time{}
	c.most = max(c.most, from, to)
}

// spare is how many machines a control plane may have beyond those that anybody asked for: two of a surge, for replicas
// stay odd beside etcd, and one of a rollout.
const spare = 3

// Crowd is an invariant: a control plane has no more machines than the most that anybody asked for, and what surge and rollout
// add. asked is how many it had at the beginning.
func (w *World) Crowd(cluster string, machines, asked int) error {
	if most := max(asked, w.cluster(cluster).most) + spare; machines > most {
		return fmt.Errorf("crowd: %s has %d control plane machines; %d are the most that were asked for, with a surge and a rollout", cluster, machines, most)
	}
	return nil
}

// Counted: so many machines of the control plane are there. What is removed later is not scaled away any more.
func (w *World) Counted(cluster string, machines int, at time.Time) {
	if c := w.cluster(cluster); c.surplus > 0 && c.shrunk.IsZero() && machines <= c.wanted {
		c.shrunk = at
	}
}

// Lingers: a machine that a fault was on is still seen to be unhealthy, for servers were away, or have not looked again.
func (w *World) Lingers(machine string, at time.Time) {
	if m := w.machine(machine); !m.until.IsZero() {
		m.until = at
	}
}

// Disaster: a majority of the cluster's members is about to be taken, or is given back.
func (w *World) Disaster(cluster string, on bool) {
	c := w.cluster(cluster)
	if on {
		c.disaster++
	} else {
		c.disaster--
	}
	c.recovers = true
}

// Spared says whether a control plane with so many voters, of which so many answer, keeps its quorum when one more falls
// silent. Faults other than disasters take a member only then: by themselves, they never cost quorum.
func Spared(voters, answering int) bool { return answering-1 >= voters/2+1 }

// Member of a workload cluster's etcd, as the cloud has it.
type Member struct {
	ID      string
	Answers bool
}

// Quorum is the first invariant: a majority of the voters answers, but for a disaster, and until quorum was seen again
// after it. A member that never answered is a learner. voters and answering are what was counted.
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

// Removal of a machine, as the cloud's journal has it.
type Removal struct {
	Machine, Cluster string
	At               time.Time
}

// KnownMachine is what was known of a machine before it was removed.
type KnownMachine struct {
	ControlPlane bool
	Created      time.Time
	Version      string
}

// Remedy is a remediation in the log: it has the owner replace Victim. Baseline are the machines that were there.
type Remedy struct {
	Cluster, Victim string
	Baseline        []string
	Begun           time.Time
	Ended           time.Time // zero while it is in progress
	// Spurious: the victim was healthy, as far as the faults go, when it was begun. The log does not say so.
	Spurious bool `json:"-"`
}

// under says whether the remediation was in progress at a time, or over only just.
func (r Remedy) under(at time.Time) bool {
	return !at.Before(r.Begun) && (r.Ended.IsZero() || at.Before(r.Ended.Add(lag)))
}

// lag is how much later than a fault's end scute, or the owner, may still act on it: they look through servers that are
// killed and started again.
const lag = 45 * time.Second

// ShouldBeUnhealthy says whether acting for a machine at a time is right: a fault is on, or was until just now.
func (w *World) ShouldBeUnhealthy(machine string, at time.Time) bool {
	m := w.machine(machine)
	return m.on > 0 || !m.until.IsZero() && at.Before(m.until.Add(lag))
}

// Removed is the second invariant: no healthy machine is removed but by somebody's wish. It says why the removal is right.
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
