package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rules that freeze a remediation under way.
const (
	freezePaused  = "paused"
	freezeMove    = "move"
	freezeForeign = "foreign-replicas"
	freezeQuorum  = "quorum"
	freezeHeld    = "held"
	freezePolicy  = ruleUnreadable
)

// spareAfter is how long a cancellation without a newcomer waits before the victim loses its mark: one that the owner had
// begun to make must show up first, or it could be a veteran that goes in its stead. It is longer than an owner's slowest
// call, to an etcd behind a dead kubelet; waiting costs nothing, for all machines are there.
const spareAfter = 30 * time.Second

// advance says how far the remediation under way has come.
func advance(s *State, f *Facts, now time.Time) []Event {
	if s.Active == nil {
		return nil
	}
	v := newView(s.Active, f)
	for _, rule := range []func(*State, view, time.Time) []Event{
		ownerGone, freeze, seeVictim, seeNewcomers, seeReplicas, cancel, consumed, spare, conclude,
	} {
		if events := rule(s, v, now); len(events) > 0 {
			return events
		}
	}
	return nil
}

// view is a remediation under way beside what is there.
type view struct {
	a      *Active
	f      *Facts
	victim *Machine // nil when it is gone
	// newcomers were not there when it began, and are not on their way out.
	newcomers []*Machine
	replicas  int32 // where they were asked for
	// leaving are machines of any age that are being deleted.
	leaving int
}

func newView(a *Active, f *Facts) view {
	v := view{a: a, f: f, victim: f.machine(a.Victim), replicas: f.Owner.Replicas}
	if a.Request.Where == AtTopology {
		v.replicas = f.Cluster.TopologyReplicas
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		switch {
		case m.Deleting:
			v.leaving++
		case !slices.ContainsFunc(a.Request.Baseline, func(b Subject) bool { return b.UID == m.UID }):
			v.newcomers = append(v.newcomers, m)
		}
	}
	return v
}

func (v view) scales() bool { return v.a.Request.Method == Surge }

// rolling: the owner replaces its machines for a reason that is not ours.
func (v view) rolling() bool { return v.f.Owner.RollingOut != "" || v.f.Cluster.UpgradePending }

func ownerGone(_ *State, v view, _ time.Time) []Event {
	if v.f.Owner.Found {
		return nil
	}
	return []Event{CancelStarted{Cause: OwnerGone, Reason: "the owner is gone"}, Cancelled{Cause: OwnerGone}}
}

func freeze(_ *State, v view, now time.Time) []Event {
	rule, reason, next := v.freezing(now)
	switch {
	case rule == v.a.Frozen:
		return nil
	case rule == "":
		return []Event{Thawed{}}
	default:
		return []Event{Frozen{Rule: rule, Reason: reason, Next: next}}
	}
}

func (v view) freezing(now time.Time) (rule, reason, next string) {
	f, a := v.f, v.a
	switch {
	case f.Move != "":
		return freezeMove, "the cluster is being moved: " + f.Move, ""
	case v.victim != nil && v.victim.Paused:
		return freezePaused, "machine " + v.victim.Name + " is paused", "it goes on when the pause is lifted"
	case f.Cluster.Paused || f.Owner.Paused:
		return freezePaused, "the cluster or its " + f.Owner.Kind + " is paused", "it goes on when the pause is lifted"
	case f.Policy.Unreadable != "" && a.Step != Cancelling && a.Step != Settling:
		return freezePolicy, f.Policy.unread(), f.Policy.correct() + "; or abort the remediation"
	case v.foreign():
		return freezeForeign, fmt.Sprintf("somebody else set the replicas to %d while %d were asked for instead of %d", v.replicas, a.Request.To, a.Request.From),
			"take the replicas out of the hands of what sets them (a GitOps tool, an autoscaler), or allow RolloutSurge; then abort this remediation"
	case v.victim != nil && v.victim.Deleting && len(v.victim.Hooks) > 0:
		return freezeHeld, "its deletion is held" + hooks(v.victim), "see to what put the hook there: nothing else happens at " + f.Owner.Name + " meanwhile"
	case v.victim != nil && v.victim.Deleting && now.Sub(v.victim.DeletingSince) > f.Policy.Timeouts.Removal && f.Policy.Timeouts.Removal > 0:
		return freezeHeld, fmt.Sprintf("%s has been deleting it for more than %s", f.Owner.Name, f.Policy.Timeouts.Removal), "see why the machine does not go: its drain, its volumes, its infrastructure"
	case f.blinking() && a.Frozen == freezeQuorum:
		return freezeQuorum, "", "" // as it was
	case f.isControlPlane() && a.Step != Settling && !f.blinking():
		if d := blind(f); d != nil {
			return freezeQuorum, d.Reason, d.Next
		}
	}
	return "", "", ""
}

// foreign: replicas are neither what was found nor what was asked for; or they were put back before there was a newcomer,
// and not by us. An abort ends it: then nothing more is asked for.
func (v view) foreign() bool {
	a := v.a
	if !v.scales() || a.Restored || a.Step == Cancelling || a.Gone {
		return false
	}
	if v.replicas == a.Request.To {
		return false
	}
	return v.replicas != a.Request.From || a.Raised && a.Replacement.UID == "" && len(v.newcomers) == 0 && !v.rolling()
}

func seeVictim(_ *State, v view, _ time.Time) []Event {
	switch {
	case v.victim == nil && !v.a.Gone:
		return []Event{VictimGone{}}
	case v.victim != nil && v.victim.Deleting && !v.a.Deleting:
		return []Event{VictimDeleting{}}
	default:
		return nil
	}
}

func seeNewcomers(_ *State, v view, _ time.Time) []Event {
	a := v.a
	var events []Event
	replacement := v.f.machine(a.Replacement)
	if a.Replacement.UID == "" || replacement == nil || replacement.Deleting {
		replacement = nil
		for _, m := range v.newcomers {
			if m.UID != a.Replacement.UID && !contains(a.Extras, m) {
				replacement = m
				events = append(events, ReplacementObserved{Replacement: m.subject()})
				break
			}
		}
	}
	for _, m := range v.newcomers {
		if replacement == nil || m.UID == replacement.UID || contains(a.Extras, m) || !v.scales() || v.rolling() || a.Step == Cancelling || a.Gone && !v.tooMany() {
			continue
		}
		events = append(events, ReplacementObserved{Replacement: m.subject(), Extra: true})
	}
	if len(events) == 0 && replacement != nil && !a.Ready && replacement.ready(OwnerKind(v.f.Owner.Kind), v.f.Owner.ExternalEtcd) && a.Step != Cancelling {
		events = append(events, ReplacementReady{Replacement: a.Replacement})
	}
	return events
}

func contains(list []Subject, m *Machine) bool {
	return slices.ContainsFunc(list, func(s Subject) bool { return s.UID == m.UID })
}

func seeReplicas(_ *State, v view, _ time.Time) []Event {
	a := v.a
	switch {
	case !v.scales():
		return nil
	case v.replicas == a.Request.To && !a.Raised:
		return []Event{ScaleRaised{}}
	case v.replicas == a.Request.From && a.Raised && !a.Restored && a.Frozen != freezeForeign:
		return []Event{ScaleRestored{}}
	default:
		return nil
	}
}

// cancel says that what was asked for is to be taken back. A victim on its way out cannot be kept.
func cancel(s *State, v view, now time.Time) []Event {
	a := v.a
	if a.Step == Cancelling || a.Gone || a.Deleting {
		return nil
	}
	start := func(c Cause, format string, args ...any) []Event {
		return []Event{CancelStarted{Cause: c, Reason: fmt.Sprintf(format, args...)}}
	}
	waited := now.Sub(a.Since)
	switch p := s.Patients[a.Victim.UID]; {
	case v.f.Owner.Deleting || v.f.Cluster.Deleting:
		return []Event{CancelStarted{Cause: OwnerGone, Reason: "the owner is being deleted"}, Cancelled{Cause: OwnerGone}}
	case p != nil && p.Aborted:
		return start(Aborted, "an operator aborted it")
	case v.victim != nil && v.victim.Skip:
		return start(Aborted, "the machine bears the annotation cluster.x-k8s.io/skip-remediation now")
	case v.f.Policy.Name == "":
		return start(Deselected, "no RepairPolicy selects the machine any more")
	case a.Frozen != "" && a.Frozen != freezeForeign, v.f.blinking():
		return nil
	case p == nil || p.Mark == nil:
		return start(Recovered, "the machine is healthy again")
	case a.Frozen != "":
		return nil
	case v.rolling() && a.Request.Method != OwnerRemediation:
		return nil // the rollout takes the marked machine first
	case a.Step == Requesting && waited > v.f.Policy.Timeouts.ScaleUp:
		return start(TimedOut, "%s did not act within %s%s", v.f.Owner.Name, v.f.Policy.Timeouts.ScaleUp, v.obstacle())
	case a.Step == Removing && v.f.isControlPlane() && (v.stuck() || v.outrun()) && waited > v.f.Policy.Timeouts.ScaleUp:
		return start(TimedOut, "%s did not delete the machine within %s%s", v.f.Owner.Name, v.f.Policy.Timeouts.ScaleUp, v.obstacle())
	case a.Step == Replacing && waited > v.f.Policy.Timeouts.Ready:
		return start(TimedOut, "replacement %s was not ready within %s", a.Replacement.Name, v.f.Policy.Timeouts.Ready)
	default:
		return nil
	}
}

// obstructed: the owner deletes no machine by scaling down, for components of another one are not well.
func (v view) obstructed(m *Machine) bool {
	return slices.ContainsFunc(v.f.Machines, func(other Machine) bool {
		return other.UID != m.UID && !other.Deleting && len(other.broken(v.f.Owner.ExternalEtcd)) > 0
	})
}

// outrun: the owner would take an extra newcomer before the victim, and cannot, for the victim's components are not well.
func (v view) outrun() bool {
	return slices.ContainsFunc(v.newcomers, func(m *Machine) bool { return contains(v.a.Extras, m) && m.DeleteMark != "" && v.obstructed(m) })
}

// stuck: the owner cannot delete the victim, for another machine is not well; or somebody else took a machine away, and the
// victim, which broke meanwhile, keeps the owner from making one more.
func (v view) stuck() bool {
	return v.victim != nil && (v.obstructed(v.victim) || !v.tooMany() && len(v.victim.broken(v.f.Owner.ExternalEtcd)) > 0)
}

// obstacle guesses why an owner does not act.
func (v view) obstacle() string {
	var broken []string
	for i := range v.f.Machines {
		if m := &v.f.Machines[i]; v.f.isControlPlane() && len(m.broken(v.f.Owner.ExternalEtcd)) > 0 {
			broken = append(broken, m.Name)
		}
	}
	if len(broken) == 0 {
		return ""
	}
	return "; components are not well on " + strings.Join(broken, ", ")
}

// consumed: somebody else took another machine away; the newcomer has filled that gap, and the victim is still there.
func consumed(_ *State, v view, _ time.Time) []Event {
	a := v.a
	if !v.scales() || !a.Restored || a.Deleting || a.Gone || a.Step == Cancelling || v.leaving > 0 || len(v.f.Machines) > int(a.Request.From) {
		return nil
	}
	if a.Replacement.UID == "" {
		return nil
	}
	return []Event{SurgeConsumed{Why: "another machine went; the newcomer has taken its place"}}
}

// tooMany: there are more machines than before it began. If somebody took another one away meanwhile, there are not, and a
// newcomer has that place.
func (v view) tooMany() bool { return v.staying() > v.wanted() }

// short: there are fewer; the owner is to make one.
func (v view) short() bool { return v.staying() < v.wanted() }

// staying are the machines that nobody deletes.
func (v view) staying() int { return len(v.f.Machines) - v.leaving }

// wanted are the machines that people want.
func (v view) wanted() int {
	switch {
	case v.asking():
		return int(v.a.Request.From)
	case v.scales():
		return int(v.replicas)
	default:
		return int(v.f.Owner.Replicas)
	}
}

// asking: the owner is still asked for more, and may have made one that was not seen yet.
func (v view) asking() bool { return v.scales() && v.replicas == v.a.Request.To }

// surplus: there will be too many even when the victim is gone.
func (v view) surplus() bool {
	staying := v.staying()
	if v.victim != nil && !v.victim.Deleting {
		staying--
	}
	return staying > int(v.a.Request.From)
}

// spare: in a cancellation, the newcomers are marked before the victim loses its mark. There is never a moment with one
// machine too many and no mark: the owner would take the oldest, a healthy veteran.
func spare(_ *State, v view, now time.Time) []Event {
	a := v.a
	if a.Step != Cancelling || a.Spared || v.victim == nil {
		return nil
	}
	for _, m := range v.newcomers {
		if m.DeleteMark == "" && v.tooMany() {
			return nil
		}
	}
	if !v.heard() {
		return nil
	}
	if v.pulled() || v.handedOver() || len(v.newcomers) == 0 && a.Replacement.UID == "" && now.Sub(a.Since) < spareAfter {
		return nil
	}
	return []Event{VictimSpared{}}
}

// heard: the owner knows that no more is asked for.
func (v view) heard() bool {
	return !v.scales() || v.replicas != v.a.Request.To && v.f.Owner.Replicas != v.a.Request.To && v.f.Owner.Observed
}

// pulled: the lever on the victim is not back.
func (v view) pulled() bool {
	switch r := v.a.Request; {
	case v.victim == nil || r.Method != RolloutSurge:
		return false
	case r.Lever == LeverCertificates:
		return v.victim.Certificates == r.Pull
	default:
		return v.victim.ClonedFrom == r.Pull
	}
}

// conclude ends what is at its end.
func conclude(_ *State, v view, now time.Time) []Event {
	a := v.a
	if a.Step == Cancelling {
		if !a.Spared || len(v.newcomers) > 0 && v.tooMany() || v.leaving > 0 || len(unwind(v)) > 0 {
			return nil
		}
		return []Event{Cancelled{Cause: a.Cause}}
	}
	marked := slices.ContainsFunc(v.newcomers, func(m *Machine) bool { return m.DeleteMark == DeleteValue })
	if !a.Gone || v.leaving > 0 || len(settle(v)) > 0 || marked && !v.heard() {
		return nil
	}
	if a.Ready && v.f.machine(a.Replacement) != nil && !v.tooMany() {
		return []Event{Succeeded{Note: v.f.uneven()}}
	}
	enough := !v.f.isControlPlane() || len(v.f.Machines) >= int(v.f.Owner.Replicas)
	ready := 0
	for i := range v.f.Machines {
		if v.f.Machines[i].ready(OwnerKind(v.f.Owner.Kind), v.f.Owner.ExternalEtcd) {
			ready++
		}
	}
	switch {
	case enough && ready >= int(v.f.Owner.Replicas) && !v.tooMany():
		return []Event{Succeeded{Note: cmp.Or(v.f.uneven(), "all machines are ready")}}
	case v.f.Policy.Unreadable == "" && now.Sub(a.Since) > v.f.Policy.Timeouts.Ready+v.f.Policy.Timeouts.ScaleUp:
		return []Event{CancelStarted{Cause: TimedOut, Reason: "the machine is gone, and its replacement is not ready in time"}, Cancelled{Cause: TimedOut}}
	default:
		return nil
	}
}
