package remediator

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"scute.dev/kube/object"
)

// Actions returns the writes that the state requires and that the facts do not contain yet, in the
// order in which they must be performed: first the writes of the active remediation, then the marks
// and requests of all machines. If a write fails, the caller must skip the later writes that depend
// on it (Action.DependsOn). If the facts are outdated, a write is repeated, which is harmless.
func Actions(s *State, f *Facts, now time.Time) []Action {
	view, seen := s.activeView(f)
	g := newGate(view, seen, now)
	actions := s.withdrawStrayHandOvers(f)
	switch {
	case g.remediation == nil:
		actions = append(actions, cleanUp(s, f)...)
	case g.orphaned():
		actions = append(actions, g.scaleBack()...)
	default:
		actions = slices.Concat(actions, s.removeLeftoverAnnotations(seen), stepOf(g.Step).writes(*g.remediation))
	}
	for i := range actions {
		actions[i].forRemediation = true
		if actions[i].Type == Scale {
			actions[i].Replicas, actions[i].Expect = actions[i].Replicas+seen.excludedReplicas, actions[i].Expect+seen.excludedReplicas
		}
	}
	g.state, g.facts = s, f
	// Writes that need the workload cluster come last, so that they delay no other write if it cannot be reached.
	writes := slices.Concat(actions, housekeeping(s, f, now), guardActions(f, now), maintenanceActions(s, f, now))
	return slices.DeleteFunc(writes, func(a Action) bool { return !g.permits(a) })
}

// requestingActions returns the writes of a step in which the owner is asked to replace a machine
// that still exists. While a suspension restricts writes, or a control plane cannot be observed, it
// returns only the writes that retract unneeded parts of the request.
func requestingActions(r remediation) []Action {
	if r.victim == nil {
		return nil // its deletion is recorded first
	}
	if r.by != nil && r.by.writes < writesAll || checkBlind(r.facts) != nil {
		return r.method.retract(r)
	}
	return r.method.request(r)
}

// removeUnneededAnnotations returns the writes that remove the delete annotations that an earlier
// remediation left. During a hand-over they are not needed, because the owner deletes the machine
// that it was asked to remediate.
func (r remediation) removeUnneededAnnotations() []Action {
	if r.Request.Method != OwnerRemediation {
		return nil
	}
	return slices.DeleteFunc(r.facts.removeDeleteAnnotations(), func(a Action) bool { return !slices.Contains(r.Request.Baseline, a.Machine) })
}

// removeSurplus returns the writes that ask the owner to remediate a new machine that must be
// deleted, if broken components of another machine, such as the unhealthy one, keep the owner from
// deleting it at a scale-down. It asks for one machine at a time: first for a machine that is
// already handed over, then for the surplus machines, and last for the replacement, because the
// owner may be able to delete the unhealthy machine once the surplus machines are gone. It returns
// nil for an external etcd, with which the owner always refuses.
func (r remediation) removeSurplus() []Action {
	switch {
	case !r.facts.isControlPlane() || r.facts.Owner.ExternalEtcd || !r.in(sparing, settling):
		return nil
	case !r.tooMany():
		return r.cancelHandOvers() // before the machine being deleted is gone, because the owner remediates at once then
	case r.facts.deletingMachines() > 0:
		return nil
	case r.reached(r.deletionDeadline()): // the owner has not deleted the new machines in time
		return r.withdrawHandOvers()
	}
	for _, m := range r.byRemovalOrder() {
		safe := checkBlind(r.facts) == nil && r.facts.riskOfRemoval(m).none()
		switch {
		case r.in(settling) && !r.isSurplus(m):
		case handedOver(m) && !safe && !r.facts.withinGracePeriod():
			return r.withdrawHandOvers() // the owner has not started, and the cluster can no longer spare the machine
		case !safe || !r.obstructed(m) || r.facts.Owner.Relaxed != "":
		case handedOver(m):
			return r.reportOthers(m) // one at a time
		case !r.ownerObserved():
			return nil
		default:
			return append(r.reportOthers(m), Action{Type: HandOver, Machine: m.subject()})
		}
	}
	return nil
}

// ownerObserved reports whether the owner should have observed by now that the unhealthy machine
// has no delete annotation. Until then the owner may still delete the unhealthy machine, and would
// remediate the new machine after that.
func (r remediation) ownerObserved() bool {
	return r.victim == nil || r.victim.DeleteAnnotation == "" && (!r.in(sparing) || r.reached(r.Since.Add(spareAfter)))
}

// byRemovalOrder returns the new machines, sorted: first the machines that are handed over, then
// the surplus machines (Extras), then all others.
func (r remediation) byRemovalOrder() []*Machine {
	return slices.SortedStableFunc(slices.Values(r.newMachines), func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(boolToInt(handedOver(b)), boolToInt(handedOver(a))), cmp.Compare(boolToInt(r.isSurplus(b)), boolToInt(r.isSurplus(a))))
	})
}

// deletionDeadline returns the time by which a control plane must have deleted the new machines of
// a cancelled remediation, or zero if there is no timeout.
func (r remediation) deletionDeadline() time.Time {
	limit := r.facts.Policy.Timeouts.Removal
	return dueIf(r.facts.isControlPlane() && r.in(sparing) && limit > 0, r.deadlineAfter(limit))
}

// withdrawHandOvers returns the writes that withdraw the requests to remediate new machines. If
// these requests outlived the remediation, the owner could remediate a machine that is no longer
// surplus, and its annotation remediation-in-progress would keep it from remediating any other
// machine.
func (r remediation) withdrawHandOvers() []Action {
	return actionsFor(slices.Values(r.newMachines), Withdraw, func(m *Machine) bool { return handedOver(m) && m.OtherHealthCheck == "" })
}

// cancelHandOvers returns the writes that reset the conditions of new machines that are handed
// over. These machines must stay, because another client deleted another machine.
func (r remediation) cancelHandOvers() []Action {
	return actionsFor(slices.Values(r.newMachines), ClearConditions, func(m *Machine) bool {
		return m.lastCheck().Reason == HandOverReason && handedOver(m) && !m.Deleting
	})
}

// clearStaleRelaxed returns the write that removes the owner's annotation remediation-in-progress
// if the owner, because of it, waits for a machine that need not be created. The annotation names a
// machine that is gone: either a new machine that the owner was asked to remediate, or the
// unhealthy machine, if users now want fewer machines. While the annotation exists, the owner
// remediates no other machine.
func (r remediation) clearStaleRelaxed() []Action {
	name, ok := r.facts.orphan()
	mine := r.in(settling) && r.Victim.Name == name || !slices.ContainsFunc(r.Request.Baseline, func(m Subject) bool { return m.Name == name })
	return actionIf(ok && mine && !r.tooFew(), Action{Type: SetRelaxed, Machine: Subject{Name: name}})
}

// gate checks the safety of each write, and the consent to it. No write bypasses it.
type gate struct {
	*remediation // nil without one
	state        *State
	facts        *Facts
	now          time.Time
	allowed      writeExtent
	unreadable   bool // the policy cannot be read: only withdrawing requests to remediate
}

func newGate(s *State, f *Facts, now time.Time) gate {
	g := gate{state: s, facts: f, now: now, allowed: writesAll}
	if s.Active != nil {
		r := s.remediation(f, now)
		g.remediation = &r
		if r.by != nil {
			g.allowed = r.by.writes
		}
	}
	if !f.Owner.Found && (g.remediation == nil || !g.orphaned()) || f.Move != "" || f.Cluster.Paused {
		g.allowed = writesNothing // not even a mark in a paused cluster, which may be moving to another management cluster
	} else if f.Policy.Unreadable != "" && s.Active == nil {
		g.allowed, g.unreadable = writesNothing, true
	}
	return g
}

// permits reports whether the current facts permit a write. The earlier decision does not suffice,
// because a member of etcd may have stopped answering since it was made, or a user may have asked
// scute to do nothing.
func (g gate) permits(a Action) bool {
	switch {
	case a.Type == SetNeeded && a.Value == "": // even if its owner is gone or the policy cannot be read
		return g.facts.Move == "" && !g.facts.Cluster.Paused
	case a.Type == Withdraw && g.unreadable:
		return true
	case g.allowed == writesNothing || a.forRemediation && g.allowed < writesUndo, !a.forRemediation && !g.facts.Owner.Found:
		return false
	case g.facts.Policy.DryRun && g.state.Active == nil && !a.onlyRemoves() && !g.updatesMark(a):
		return false
	case !a.isRisky():
		return true
	case a.Type == Defragment, a.Type == Disarm:
		return g.state.defragmentationBlocker(g.facts) == "" && g.facts.Policy.Name != "" && g.facts.Policy.Defragmentation.Enabled
	default:
		return g.consents(a) && g.isSafe(a)
	}
}

// isRisky reports whether the machine or its workload may be unavailable after the write.
func (a Action) isRisky() bool {
	return slices.Contains([]ActionType{HandOver, CreateStepObject, SkipDrain, SkipDetach, Defragment, Disarm}, a.Type)
}

func (a Action) onlyRemoves() bool {
	switch a.Type {
	case DeleteStepObject, DeleteRequest, ClearConditions, Withdraw:
		return true
	case SetUnhealthy, SetDelete, SetRelaxed, Touch:
		return a.Value == ""
	default:
		return false
	}
}

// updatesMark reports whether a write updates an existing unhealthy annotation, for example when a
// replacement is no longer scheduled.
func (g gate) updatesMark(a Action) bool {
	m := g.facts.machine(a.Machine)
	return a.Type == SetUnhealthy && m != nil && m.UnhealthyAnnotation != ""
}

// consents reports whether both the policy and the operators permit a risky write. Pause requests
// do not prevent a HandOver, whose remediation has already started, but they prevent all other
// risky writes.
func (g gate) consents(a Action) bool {
	m, u := g.facts.machine(a.Machine), g.state.record(a.Machine.UID)
	switch {
	case m == nil || m.Skip || m.Paused || g.facts.Owner.Paused || g.facts.Policy.Unreadable != "":
		return false
	case u.Aborted || u.held(g.now):
		return false
	case a.Type == HandOver:
		return true
	default:
		return u.UID != "" && g.facts.checkPauseRequests() == nil
	}
}

// isSafe reports whether a HandOver or a CreateStepObject puts the control plane at no risk:
// without the machine, quorum is kept, another machine serves the API, and no other machine is
// being deleted. It returns true for other writes.
func (g gate) isSafe(a Action) bool {
	f := g.facts
	m := f.machine(a.Machine)
	switch {
	case !f.isControlPlane() || a.Type != HandOver && a.Type != CreateStepObject:
		return true
	case checkBlind(f) != nil:
		return false
	case a.Type == CreateStepObject:
		return f.riskOfStopping(m).none()
	default:
		return f.riskOfRemoval(m).none()
	}
}

// remediationNote is the content of the annotations with which a KubeadmControlPlane records a
// remediation that it has started: remediation-in-progress on itself, which relaxes its preflight
// checks, and remediation-for on the new machine.
type remediationNote struct {
	Machine    string `json:"machine"`
	Timestamp  string `json:"timestamp"`
	RetryCount int    `json:"retryCount"`
}

// orphan returns the name of the machine in the owner's annotation remediation-in-progress. ok
// reports whether there is such a name and that machine is gone.
func (f *Facts) orphan() (machine string, ok bool) {
	n, ok := parseNote(f.Owner.Relaxed)
	return n.Machine, ok && !slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Name == n.Machine })
}

// RelaxedFor returns the name of the machine in a value of the annotation remediation-in-progress,
// or "" if the value has none.
func RelaxedFor(annotation string) string {
	n, _ := parseNote(annotation)
	return n.Machine
}

func parseNote(annotation string) (n remediationNote, ok bool) {
	return n, json.Unmarshal([]byte(annotation), &n) == nil && n.Machine != ""
}

func actionsFor(machines iter.Seq[*Machine], do ActionType, fits func(*Machine) bool) (actions []Action) {
	for m := range machines {
		if fits(m) {
			actions = append(actions, Action{Type: do, Machine: m.subject()})
		}
	}
	return actions
}

func actionIf(so bool, a Action) []Action {
	if !so {
		return nil
	}
	return []Action{a}
}

func (r remediation) set(do ActionType, value string) Action {
	return Action{Type: do, Machine: r.Victim, Value: value}
}

// answering reports whether a member of etcd was asked and is healthy.
func (m *Member) answering() bool { return m != nil && m.Answers == object.True }
