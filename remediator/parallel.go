package remediator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A policy may permit that several workers of one owner are replaced at once. Only the slow part
// happens side by side: each remediation has its own new machine, which starts and joins.
// Everything else happens for one remediation at a time, the active one:
//
//   - The other remediations are resting: their new machines exist, and each has raised the replicas
//     by one. Nothing is written for them.
//   - Decisions about the active remediation ignore the machines and the replicas of the resting
//     remediations (activeView).
//   - Another remediation becomes active (Continued) only while all are resting, when it starts or
//     one of its transitions is due.
//   - If an external change affects them (interference), they are merged into the active remediation
//     (Merged), which then undoes the requests of all. After that, any further change affects only
//     one remediation.

// InProgress returns the remediations in progress, the oldest first.
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

func (s *State) activeOf(uid types.UID) *Active {
	return pick(s.InProgress(), func(a *Active) bool { return a.Victim.UID == uid })
}

// creatorOf returns the remediation in progress that created a machine, or nil. No other
// remediation starts for such a machine.
func (s *State) creatorOf(m *Machine) *Active {
	list := s.InProgress()
	return cmp.Or(
		pick(list, func(a *Active) bool { return a.created(m) }),
		pick(list, func(a *Active) bool { return !contains(a.Request.Baseline, m) }),
	)
}

// created reports whether a machine is a new machine of the remediation according to the log.
func (a *Active) created(m *Machine) bool { return a.Replacement.UID == m.UID || contains(a.Extras, m) }

// isResting reports whether nothing needs to be done for the remediation until its new machine is
// ready.
func (a *Active) isResting(f *Facts) bool {
	victim, replacement := f.machine(a.Victim), f.machine(a.Replacement)
	stays := func(m *Machine) bool { return m != nil && !m.Deleting && m.DeleteAnnotation == "" }
	return a.Request.Method == Surge && a.raisedBy() == 1 && a.Step == replacing && a.Scale == scaleRaised && a.Frozen == "" && len(a.Extras) == 0 &&
		stays(victim) && stays(replacement)
}

func (a *Active) raisedBy() int32 { return a.Request.To - a.Request.From }

// activeView returns the input for decisions about the active remediation: a state without the
// resting remediations, and facts without their machines and replicas.
func (s *State) activeView(f *Facts) (*State, *Facts) {
	n := int32(len(s.Resting)) //nolint:gosec // few
	if n == 0 {
		return s, f
	}
	seen, own, view := *f, *s.Active, *s
	seen.Machines = slices.DeleteFunc(slices.Clone(f.Machines), func(m Machine) bool {
		return slices.ContainsFunc(s.Resting, func(a *Active) bool { return a.Victim.UID == m.UID || a.created(&m) })
	})
	seen.excludedReplicas = 2 * n // for each resting remediation, the replica of its machine and the replica that it added
	seen.Owner.Replicas -= seen.excludedReplicas
	if f.Cluster.Topology {
		seen.Cluster.TopologyReplicas -= seen.excludedReplicas
	}
	if wanted, ok := f.Cluster.Entries[own.Request.Entry]; ok {
		seen.Cluster.Entries = maps.Clone(f.Cluster.Entries)
		seen.Cluster.Entries[own.Request.Entry] = wanted - seen.excludedReplicas
	}
	own.Request.From, own.Request.To = own.Request.From-n, own.Request.To-n
	view.Active, view.Resting = &own, nil
	return &view, &seen
}

// focused returns a copy of the state in which the given remediation is the active one.
func (s *State) focused(a *Active) *State {
	view := *s
	view.Resting = slices.Clone(s.Resting)
	view.focus(a.Victim)
	return &view
}

func (s *State) focus(m Subject) {
	if i := slices.IndexFunc(s.Resting, func(a *Active) bool { return a.Victim.UID == m.UID }); i >= 0 {
		s.Active, s.Resting[i] = s.Resting[i], s.Active
	}
}

// interference returns a description of an external change that affects the remediations in
// progress, or "" for none. It returns "" while the cluster is being moved or is paused, because
// changes cannot be observed then.
func (s *State) interference(f *Facts) string {
	if len(s.Resting) == 0 || f.Move != "" || f.Cluster.Paused {
		return ""
	}
	for _, a := range s.Resting {
		if !a.isResting(f) {
			return "machine " + a.Victim.Name + ", or its replacement " + a.Replacement.Name + ", is deleted or has a delete annotation"
		}
	}
	a := s.Active
	view, seen := s.activeView(f)
	replicas := view.Active.Request.replicas(seen)
	others := len(seen.where(func(m *Machine) bool { return m.UID != a.Victim.UID && !m.Deleting && contains(a.Request.Baseline, m) }))
	switch {
	case !f.Owner.Found || f.Owner.Deleting || f.Cluster.Deleting:
		return "the owner is being deleted"
	case f.setProblem() != "":
		return f.setProblem()
	case replicas != view.Active.Request.From && (replicas != view.Active.Request.To || a.Scale == scaleRestored):
		return "another client set the replicas"
	case others != int(view.Active.Request.From)-1:
		return "another client deleted a machine"
	default:
		return ""
	}
}

// setProblem returns why the machines of an owner are, or may soon be, in several MachineSets, or
// "" if they are all in one. With the strategy OnDelete, a scale-down deletes machines of the
// oldest MachineSet, whichever machines have the delete annotation, so surplus new machines of
// another MachineSet could not be removed again.
func (f *Facts) setProblem() string {
	switch {
	case f.Owner.OnDelete:
		return "the strategy of the MachineDeployment is OnDelete"
	case f.Owner.RollingOut != "" || f.Cluster.UpgradePending || slices.ContainsFunc(f.Machines, func(m Machine) bool { return !f.inCurrentSet(&m) }):
		return "a rollout started meanwhile"
	default:
		return ""
	}
}

func (s *State) mergeEvents(why string) []Event {
	var events []Event
	for _, a := range s.InProgress() {
		if a != s.Active {
			events = append(events, Merged{Machine: a.Victim, Reason: why})
		}
	}
	return events
}

// mayStartBeside reports whether the replacement of this worker may start while other workers are
// being replaced: the policy permits one more, all remediations in progress are resting, and the
// owner has as many machines as requested.
func (s *State) mayStartBeside(u *UnhealthyMachine, f *Facts) bool {
	all := s.InProgress()
	return !f.isControlPlane() && !f.Policy.DryRun && len(all) < f.Policy.Limits.WorkersAtOnce && s.escalating() == nil &&
		!slices.ContainsFunc(all, func(a *Active) bool { return !a.isResting(f) }) && s.interference(f) == "" && f.setProblem() == "" &&
		f.deletingMachines() == 0 && len(f.Machines) == int(f.Owner.Replicas) && f.desiredReplicas() == f.Owner.Replicas &&
		f.Owner.Replicas == s.Active.Request.To+int32(len(s.Resting)) && //nolint:gosec // few
		s.creatorOf(f.machine(u.Subject)) == nil && u.EscalationStep == ""
}

// park moves the remediations in progress to Resting, because another remediation starts. It
// subtracts the replicas that the resting remediations have added from those in e, so that the new
// request is based on the replicas that users want.
func (s *State) park(e *SurgeRequested) {
	beside := slices.DeleteFunc(s.InProgress(), func(a *Active) bool { return a.Victim.UID == e.Machine.UID })
	if e.Method != Surge || slices.ContainsFunc(beside, func(a *Active) bool { return a.Request.Method != Surge }) {
		beside = nil // only surges of workers happen side by side
	}
	s.Resting = beside
	for _, a := range beside {
		e.From, e.To = e.From-a.raisedBy(), e.To-a.raisedBy()
	}
}

// removeActive removes a remediation that ends from the state. It adds the new machines of that
// remediation to the Baseline of the other remediations, so that they do not count as their new
// machines.
func (s *State) removeActive(a *Active) {
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

// merge ends a resting remediation and adds its request to the active remediation: the new machine
// of the resting remediation becomes a surplus machine of the active one, whose original replicas
// stay the same.
func (s *State) merge(e Merged, at time.Time) {
	i := slices.IndexFunc(s.Resting, func(a *Active) bool { return a.Victim.UID == e.Machine.UID })
	if i < 0 {
		return
	}
	a, other := s.Active, s.Resting[i]
	s.finish(other, pastRemediation{Outcome: EndCancelled, Cause: Superseded, Note: e.Reason}, at)
	s.recordOf(other.Victim).revertAttempt()
	a.addRequest(other, at)
}

func (a *Active) addRequest(other *Active, at time.Time) {
	a.Request.Baseline = slices.DeleteFunc(slices.Clone(a.Request.Baseline), func(m Subject) bool {
		return m == other.Replacement || slices.Contains(other.Extras, m)
	})
	if a.Scale == scaleRestored {
		a.Request.To = a.Request.From
	}
	a.Request.To, a.Scale, a.Merged = a.Request.To+other.raisedBy(), scaleRaised, true
	a.Extras = append(a.Extras, other.Extras...)
	if a.Replacement.UID == "" {
		a.Replacement, a.Ready = other.Replacement, false
		a.advance(replacing, at)
	} else if other.Replacement.UID != "" {
		a.Extras = append(a.Extras, other.Replacement)
	}
	if a.Step == sparing { // replicas are raised again: the machine keeps its delete annotation until they are restored
		a.Step, a.Since = cancelling, at
	}
}
