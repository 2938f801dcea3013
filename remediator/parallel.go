package remediator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Several workers of one owner may be replaced at once, where the policy says so. What takes long is done side by side: each has its own
// new machine, which starts and joins. All else is done for one of them, the active one, as if it were alone:
//
//   - The others rest: their new machines exist, and replicas are raised by one for each. Nothing is written for them.
//   - The active one sees facts without the machines and the replicas of those that rest (apart).
//   - Another one becomes active (Continued) only while all rest: when there is something to do for it, or when it is begun.
//   - If something is not as these left it (disturbed), they are merged: the active one remains, and takes back what was asked for the others
//     with what was asked for itself (Merged). So whatever else happens, happens to one remediation.

// InProgress are the remediations in progress, those that were begun earlier first.
func (s *State) InProgress() []*Active {
	if s.Active == nil {
		return nil
	}
	list := append([]*Active{s.Active}, s.Resting...)
	slices.SortStableFunc(list, func(a, b *Active) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.Victim.UID, b.Victim.UID))
	})
	return list
}

// activeOf is the remediation of a machine that is in progress, nil without.
func (s *State) activeOf(uid types.UID) *Active {
	for _, a := range s.InProgress() {
		if a.Victim.UID == uid {
			return a
		}
	}
	return nil
}

// partOf is the remediation that made a machine, and is not over; nil without. Nothing else is begun for such a machine.
func (s *State) partOf(m *Machine) *Active {
	list := s.InProgress()
	for _, a := range list {
		if a.made(m) {
			return a
		}
	}
	for _, a := range list {
		if !contains(a.Request.Baseline, m) {
			return a
		}
	}
	return nil
}

// made says that a machine is known as a new one of the remediation.
func (a *Active) made(m *Machine) bool { return a.Replacement.UID == m.UID || contains(a.Extras, m) }

// rests says that nothing but time passes until the new machine is ready.
func (a *Active) rests(f *Facts) bool {
	victim, replacement := f.machine(a.Victim), f.machine(a.Replacement)
	stays := func(m *Machine) bool { return m != nil && !m.Deleting && m.DeleteMark == "" }
	return a.Request.Method == Surge && a.raise() == 1 && a.Step == Replacing && a.Scale == ScaleUp && a.Frozen == "" && len(a.Extras) == 0 &&
		stays(victim) && stays(replacement)
}

// raise is by how much it has replicas raised.
func (a *Active) raise() int32 { return a.Request.To - a.Request.From }

// apart is what the active remediation sees: a state without those that rest, and facts without their machines and replicas.
func (s *State) apart(f *Facts) (*State, *Facts) {
	n := int32(len(s.Resting)) //nolint:gosec // few
	if n == 0 {
		return s, f
	}
	seen, own, view := *f, *s.Active, *s
	seen.Machines = slices.DeleteFunc(slices.Clone(f.Machines), func(m Machine) bool {
		return slices.ContainsFunc(s.Resting, func(a *Active) bool { return a.Victim.UID == m.UID || a.made(&m) })
	})
	seen.less = 2 * n // the place of the machine, and the one that is raised
	seen.Owner.Replicas -= seen.less
	if f.Cluster.Topology {
		seen.Cluster.TopologyReplicas -= seen.less
	}
	if wanted, ok := f.Cluster.Entries[own.Request.Entry]; ok {
		seen.Cluster.Entries = maps.Clone(f.Cluster.Entries)
		seen.Cluster.Entries[own.Request.Entry] = wanted - seen.less
	}
	own.Request.From, own.Request.To = own.Request.From-n, own.Request.To-n
	view.Active, view.Resting = &own, nil
	return &view, &seen
}

// focused is the state with another one of the remediations active.
func (s *State) focused(a *Active) *State {
	view := *s
	view.Resting = slices.Clone(s.Resting)
	view.focus(a.Victim)
	return &view
}

// focus makes the remediation of a machine the active one.
func (s *State) focus(m Subject) {
	if i := slices.IndexFunc(s.Resting, func(a *Active) bool { return a.Victim.UID == m.UID }); i >= 0 {
		s.Active, s.Resting[i] = s.Resting[i], s.Active
	}
}

// disturbed says that something is not as the remediations in progress left it, "" while all is. Before a move has ended it is not known.
func (s *State) disturbed(f *Facts) string {
	if len(s.Resting) == 0 || f.Move != "" || f.Cluster.Paused {
		return ""
	}
	for _, a := range s.Resting {
		if !a.rests(f) {
			return "machine " + a.Victim.Name + ", or its replacement " + a.Replacement.Name + ", is deleted or marked to be deleted"
		}
	}
	a := s.Active
	view, seen := s.apart(f)
	replicas, others := view.Active.Request.replicas(seen), int32(0)
	for m := range seen.all() {
		if m.UID != a.Victim.UID && !m.Deleting && contains(a.Request.Baseline, m) {
			others++
		}
	}
	switch {
	case !f.Owner.Found || f.Owner.Deleting || f.Cluster.Deleting:
		return "the owner is being deleted"
	case f.oneSet() != "":
		return f.oneSet()
	case replicas != view.Active.Request.From && (replicas != view.Active.Request.To || a.Scale == ScaleBack):
		return "somebody else set the replicas"
	case others != view.Active.Request.From-1:
		return "somebody deleted another machine"
	default:
		return ""
	}
}

// oneSet says why the machines of an owner are not all of one MachineSet, or may be of several before long; "" while they are and stay so.
// With the strategy OnDelete the oldest MachineSet loses the machines that are too many, whichever are marked: new machines of another
// one could not be given back.
func (f *Facts) oneSet() string {
	switch {
	case f.Owner.OnDelete:
		return "the strategy of the MachineDeployment is OnDelete"
	case f.Owner.RollingOut != "" || f.Cluster.UpgradePending || slices.ContainsFunc(f.Machines, func(m Machine) bool { return !f.current(&m) }):
		return "a rollout came in between"
	default:
		return ""
	}
}

// merged are the facts that make one remediation of several.
func (s *State) merged(why string) []Event {
	var events []Event
	for _, a := range s.InProgress() {
		if a != s.Active {
			events = append(events, Merged{Machine: a.Victim, Why: why})
		}
	}
	return events
}

// mayJoin says that this worker, too, may be replaced beside those that are: the policy allows so many, all of them rest, and the owner has
// as many machines as it is asked for.
func (s *State) mayJoin(u *UnhealthyMachine, f *Facts) bool {
	all := s.InProgress()
	return !f.isControlPlane() && !f.Policy.DryRun && len(all) < f.Policy.Limits.WorkersAtOnce && s.escalating() == nil &&
		!slices.ContainsFunc(all, func(a *Active) bool { return !a.rests(f) }) && s.disturbed(f) == "" && f.oneSet() == "" &&
		f.leaving() == 0 && len(f.Machines) == int(f.Owner.Replicas) && f.wanted() == f.Owner.Replicas &&
		f.Owner.Replicas == s.Active.Request.To+int32(len(s.Resting)) && //nolint:gosec // few
		s.partOf(f.machine(u.Subject)) == nil && u.EscalationStep == ""
}

// park makes room for one more remediation. What it asks for is reckoned from the replicas that people want.
func (s *State) park(e *SurgeRequested) {
	beside := slices.DeleteFunc(s.InProgress(), func(a *Active) bool { return a.Victim.UID == e.Machine.UID })
	if e.Method != Surge || slices.ContainsFunc(beside, func(a *Active) bool { return a.Request.Method != Surge }) {
		beside = nil // only workers have several, which are surges
	}
	s.Resting = beside
	for _, a := range beside {
		e.From, e.To = e.From-a.raise(), e.To-a.raise()
	}
}

// over ends a remediation. Those that remain take its new machines for machines that were there before.
func (s *State) over(a *Active) {
	rest := slices.DeleteFunc(s.InProgress(), func(other *Active) bool { return other == a })
	for _, other := range rest {
		for _, m := range append([]Subject{a.Replacement}, a.Extras...) {
			if m.UID != "" && !slices.Contains(other.Request.Baseline, m) {
				other.Request.Baseline = append(slices.Clip(other.Request.Baseline), m)
			}
		}
	}
	active := s.Active
	if s.Active, s.Resting = nil, nil; len(rest) == 0 {
		return
	}
	s.Active, s.Resting = rest[0], rest[1:]
	if active != a {
		s.focus(active.Victim)
	}
}

// merge ends the remediation of a machine that rests. What was asked for it belongs to the active one: its new machine is one more, and
// replicas are raised by one more.
func (s *State) merge(e Merged, at time.Time) {
	i := slices.IndexFunc(s.Resting, func(a *Active) bool { return a.Victim.UID == e.Machine.UID })
	if i < 0 {
		return
	}
	a, other := s.Active, s.Resting[i]
	s.finish(other, PastRemediation{Outcome: EndCancelled, Cause: Superseded, Note: e.Why}, at)
	s.recordOf(other.Victim).untried()
	a.take(other, at)
}

// take over what was asked for another one.
func (a *Active) take(other *Active, at time.Time) {
	a.Request.Baseline = slices.DeleteFunc(slices.Clone(a.Request.Baseline), func(m Subject) bool {
		return m == other.Replacement || slices.Contains(other.Extras, m)
	})
	if a.Scale == ScaleBack {
		a.Request.To = a.Request.From
	}
	a.Request.To, a.Scale, a.Merged = a.Request.To+other.raise(), ScaleUp, true
	a.Extras = append(a.Extras, other.Extras...)
	if a.Replacement.UID == "" {
		a.Replacement, a.Ready = other.Replacement, false
		a.step(Replacing, at)
	} else if other.Replacement.UID != "" {
		a.Extras = append(a.Extras, other.Replacement)
	}
	if a.Step == Sparing { // replicas are raised again: the machine keeps its mark until they are not
		a.Step, a.Since = Cancelling, at
	}
}
