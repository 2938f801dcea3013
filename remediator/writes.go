package remediator

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"scute.dev/kube/object"
)

// Actions are the writes that the state calls for and the facts do not show, in their order: first those of the remediation that has
// been started, then the marks and requests of all machines. One that fails keeps those that follow it from being performed
// (Action.Follows). Facts that show all of them call for none. Facts that lag behind call for one again, which does no harm.
func Actions(s *State, f *Facts, now time.Time) []Action {
	view, seen := s.apart(f)
	g := newGate(view, seen, now)
	actions := s.strayHandOvers(f)
	if g.remediation == nil {
		actions = append(actions, tidy(s, f)...)
	} else if g.orphaned() {
		actions = append(actions, g.scaleBack()...)
	} else if state := stepOf(g.Step); state != nil {
		actions = slices.Concat(actions, s.leftOvers(seen), state.writes(*g.remediation))
	}
	for i := range actions {
		actions[i].ours = true
		if actions[i].Type == Scale {
			actions[i].Replicas, actions[i].Expect = actions[i].Replicas+seen.less, actions[i].Expect+seen.less
		}
	}
	g.state, g.facts = s, f
	// A workload cluster that cannot be reached keeps no other write from being made: what needs it comes last.
	writes := slices.Concat(actions, housekeeping(s, f, now), guarding(f, now), caring(s, f, now))
	return slices.DeleteFunc(writes, func(a Action) bool { return !g.permits(a) })
}

// asking are the writes of a step in which the machine exists, and its owner is asked to replace it. While the
// remediation is frozen, no more than is needed of the request is made.
func asking(r remediation) []Action {
	if r.victim == nil {
		return nil // first it is recorded that it is gone
	}
	if r.by != nil && r.by.writes < writesAll || r.facts.isControlPlane() && blind(r.facts) != nil {
		return r.method.hold(r)
	}
	return r.method.ask(r)
}

// unmarked takes off the marks that an earlier remediation left, and that are one too many since the owner deletes the machine that it was
// handed.
func (r remediation) unmarked() []Action {
	if r.Request.Method != OwnerRemediation {
		return nil
	}
	return slices.DeleteFunc(r.facts.unmark(), func(a Action) bool { return !slices.Contains(r.Request.Baseline, a.Machine) })
}

// giveBack hands a surplus new machine to its owner's own remediation, if the owner's scale-down is blocked, at least
// by the broken components of the unhealthy machine. Where etcd is external, that remediation always refuses. One that
// is handed over already comes first, then those that the surge made in excess, the replacement last: when the others
// are gone, the owner may be able to delete the unhealthy machine.
func (r remediation) giveBack() []Action {
	switch {
	case !r.facts.isControlPlane() || r.facts.Owner.ExternalEtcd || !r.in(Sparing, Settling):
		return nil
	case !r.tooMany():
		return r.keep() // before what leaves is gone: then the owner remediates at once
	case r.facts.leaving() > 0:
		return nil
	case r.reached(r.staysUntil()): // the owner has not deleted the new machines in time
		return r.withdrawn()
	}
	for _, m := range r.byUse() {
		safe := blind(r.facts) == nil && r.facts.removed(m).none()
		switch {
		case r.in(Settling) && !r.extra(m):
		case handedOver(m) && !safe && !r.facts.withinGracePeriod():
			return r.withdrawn() // the owner has not acted on it, and the cluster can no longer spare it
		case !safe || !r.obstructed(m) || r.facts.Owner.Relaxed != "":
		case handedOver(m):
			return r.report(m) // one at a time
		case !r.ownerKnows():
			return nil
		default:
			return append(r.report(m), Action{Type: HandOver, Machine: m.subject()})
		}
	}
	return nil
}

// ownerKnows says that the owner has seen that the unhealthy machine has no mark. Before that it may delete that one, and it would remediate the new
// machine next.
func (r remediation) ownerKnows() bool {
	return r.victim == nil || r.victim.DeleteMark == "" && (!r.in(Sparing) || r.reached(r.Since.Add(spareAfter)))
}

// byUse returns the new machines, those that are handed over first, then those that were one too many from the beginning.
func (r remediation) byUse() []*Machine {
	return slices.SortedStableFunc(slices.Values(r.newMachines), func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(count(handedOver(b)), count(handedOver(a))), cmp.Compare(count(r.extra(b)), count(r.extra(a))))
	})
}

// staysUntil is when a control plane must have deleted the new machines, zero without bound.
func (r remediation) staysUntil() time.Time {
	limit := r.facts.Policy.Timeouts.Removal
	return dueIf(r.facts.isControlPlane() && r.in(Sparing) && limit > 0, r.within(limit))
}

// withdrawn takes back that new machines were handed over. Once the remediation has ended nothing would: the owner could remediate one
// when it is no longer too many, and its note of that would keep it from remediating another.
func (r remediation) withdrawn() []Action {
	return on(slices.Values(r.newMachines), Withdraw, func(m *Machine) bool { return handedOver(m) && m.Unwired == "" })
}

// keep cancels the hand-over of new machines to their owner: another client deleted another machine, so they stay.
func (r remediation) keep() []Action {
	return on(slices.Values(r.newMachines), ClearConditions, func(m *Machine) bool {
		return m.lastCheck().Reason == HandOverReason && handedOver(m) && !m.Deleting
	})
}

// giveBackOff removes the owner's annotation of a remediation that waits for a machine which must not be created: that
// of a new machine that was handed to it and is gone, or that of the unhealthy machine, if users want fewer machines
// now. With it, the owner would remediate nothing more.
func (r remediation) giveBackOff() []Action {
	name, ok := r.facts.orphan()
	mine := r.in(Settling) && r.Victim.Name == name || !slices.ContainsFunc(r.Request.Baseline, func(m Subject) bool { return m.Name == name })
	if !ok || !mine || r.short() {
		return nil
	}
	return []Action{{Type: SetRelaxed, Machine: Subject{Name: name}}}
}

// gate is the one place where safety and consent are checked before a write, in whatever state it is called for.
type gate struct {
	*remediation // nil without one
	state        *State
	facts        *Facts
	now          time.Time
	allowed      writes
	dry          bool // only what takes something of ours off
	unread       bool // the policy cannot be read: nothing but a hand-over is taken back
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
	g.dry = f.Policy.DryRun && s.Active == nil
	if !f.Owner.Found && (g.remediation == nil || !g.orphaned()) || f.Move != "" || f.Cluster.Paused {
		g.allowed = writesNothing // of a paused cluster not even a mark: it may be on its way to another place
	} else if f.Policy.Unreadable != "" && s.Active == nil {
		g.allowed, g.unread = writesNothing, true
	}
	return g
}

// permits says that a write may be made on what is seen now. What was decided earlier is no reason: since then a member of etcd
// may have fallen silent, or somebody may have asked scute to do nothing.
func (g gate) permits(a Action) bool {
	switch {
	case a.Type == SetNeeded && a.Value == "": // also when its owner is gone, or the policy cannot be read
		return g.facts.Move == "" && !g.facts.Cluster.Paused
	case a.Type == Withdraw && g.unread:
		return true
	case g.allowed == writesNothing || a.ours && g.allowed < writesBack, !a.ours && !g.facts.Owner.Found:
		return false
	case g.dry && !a.takesOff() && !g.corrects(a):
		return false
	case !a.risks():
		return true
	case a.Type == Defragment, a.Type == Disarm:
		return g.state.hinders(g.facts) == "" && g.facts.Policy.Name != "" && g.facts.Policy.Defragmentation.Wanted
	default:
		return g.consents(a) && g.holds(a)
	}
}

// risks says that after the write a machine may be away, or what it runs may be.
func (a Action) risks() bool {
	switch a.Type {
	case HandOver, CreateStepObject, SkipDrain, SkipDetach, Defragment, Disarm:
		return true
	default:
		return false
	}
}

// takesOff says that a write only takes off what scute has written.
func (a Action) takesOff() bool {
	switch a.Type {
	case DeleteStepObject, DeleteRequest, ClearConditions, Withdraw:
		return true
	case SetMark, SetDelete, SetRelaxed, Touch:
		return a.Value == ""
	default:
		return false
	}
}

// corrects says that a mark which is there says something else now: that nothing is scheduled any more.
func (g gate) corrects(a Action) bool {
	m := g.facts.machine(a.Machine)
	return a.Type == SetMark && m != nil && m.Mark != ""
}

// consents says that neither the policy nor a human is against it. What was begun by a hand-over comes to its end where pause requests
// ask to begin nothing; what would be one step more is not made.
func (g gate) consents(a Action) bool {
	m, u := g.facts.machine(a.Machine), g.state.Unhealthy[a.Machine.UID]
	switch {
	case m == nil || m.Skip || m.Paused || g.facts.Owner.Paused || g.facts.Policy.Unreadable != "":
		return false
	case u != nil && (u.Aborted || u.held(g.now)):
		return false
	case a.Type == HandOver:
		return true
	default:
		return u != nil && !g.facts.pauseRequested()
	}
}

// pauseRequested says that the policy, or RepairLimits, are asked to begin nothing.
func (f *Facts) pauseRequested() bool {
	return len(f.Policy.Paused) > 0 || len(f.Fleet.Limits.Paused) > 0
}

// holds says that the control plane is at no risk without the machine: quorum is kept, another machine serves the API,
// and no machine is being deleted. A machine that is being deleted, or is off, is away already.
func (g gate) holds(a Action) bool {
	f := g.facts
	m := f.machine(a.Machine)
	switch {
	case !f.isControlPlane() || a.Type != HandOver && a.Type != CreateStepObject:
		return true
	case blind(f) != nil:
		return false
	case a.Type == CreateStepObject:
		return f.away(m).none()
	default:
		return f.removed(m).none()
	}
}

// note is KubeadmControlPlane's own bookkeeping of a remediation that it has begun. With it, its preflight looks at less.
type note struct {
	Machine    string `json:"machine"`
	Timestamp  string `json:"timestamp"`
	RetryCount int    `json:"retryCount"`
}

// orphan is the machine that the owner's note of a remediation names, when it is gone.
func (f *Facts) orphan() (machine string, ok bool) {
	n, ok := noteOf(f.Owner.Relaxed)
	return n.Machine, ok && !slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Name == n.Machine })
}

func noteOf(annotation string) (n note, ok bool) {
	return n, json.Unmarshal([]byte(annotation), &n) == nil && n.Machine != ""
}

// on returns an action without a value for each machine that fits.
func on(machines iter.Seq[*Machine], do ActionType, fits func(*Machine) bool) (actions []Action) {
	for m := range machines {
		if fits(m) {
			actions = append(actions, Action{Type: do, Machine: m.subject()})
		}
	}
	return actions
}

func (r remediation) set(do ActionType, value string) Action {
	return Action{Type: do, Machine: r.Victim, Value: value}
}

// answering says that a member of etcd was asked, and is well.
func (m *Member) answering() bool { return m != nil && m.Answers == object.True }
