package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scute.dev/kube/object"
)

// choose decides about every unhealthy machine: one comes first, and something may be begun for it; the others wait.
func choose(s *State, f *Facts, now time.Time) []Event {
	switch {
	case f.Policy.Name == "" || !f.Owner.Found:
		return nil
	case s.Active != nil:
		return beside(s, f, now)
	}
	var events []Event
	var first *Patient
	climber := s.climber()
	for _, p := range byUrgency(s, f) {
		m := f.machine(p.Subject)
		d := s.decide(p, m, f, now)
		if before := cmp.Or(first, climber); d.acts() && before != nil && before != p {
			d = turn(before.Subject, f)
		}
		if d.Verdict == Freeze && f.blinking() && p.Decision.Verdict != "" {
			continue // a decision is valid for a moment
		}
		begins := d.acts() && !f.Policy.DryRun && p.Rung == ""
		if begins || !p.Decision.same(d) { // the started action is recorded with the evidence for it
			events = append(events, Decided{Machine: p.Subject, Decision: d, Seen: see(f)})
		}
		if begins {
			return append(events, begin(p, m, f, d, now)) // the others are told at the next round
		}
		if first == nil && d.acts() {
			first = p
		}
	}
	return events
}

// beside decides about the other unhealthy machines while a remediation is in progress. What a human wants of them, and what was tried
// before, comes first. What was decided before and needs a human stays.
func beside(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for _, p := range byUrgency(s, f) {
		if p.UID == s.Active.Victim.UID || p.Decision.Verdict == Freeze || p.Decision.Verdict == CannotRemediate {
			continue
		}
		d := turn(s.Active.Victim, f)
		if !contains(s.Active.Request.Baseline, f.machine(p.Subject)) {
			d.Reason = "it was made in the remediation of machine " + s.Active.Victim.Name + ", which is not over"
		}
		if s.Active.Frozen != "" {
			d.Reason, d.Next = d.Reason+"; its remediation is frozen ("+s.Active.Frozen+")", s.Active.FrozenNext
		}
		for _, rule := range []func(*Patient, *Machine, *Facts, time.Time) *Decision{foreignState, s.consent, s.patience} {
			if other := rule(p, f.machine(p.Subject), f, now); other != nil {
				d = *other
				break
			}
		}
		if !p.Decision.same(d) {
			events = append(events, Decided{Machine: p.Subject, Decision: d, Seen: see(f)})
		}
	}
	return events
}

// ruleTurn is the rule of a machine that waits for another one of its owner.
const ruleTurn = "one-at-a-time"

// turn is the decision about a machine while another one comes first, and until when that one is replaced, or taken back.
func turn(before Subject, f *Facts) Decision {
	t := f.Policy.Timeouts
	return Decision{Verdict: Wait, Rule: ruleTurn, Reason: fmt.Sprintf(
		"machine %s comes first: one at a time, the most broken first; it is replaced, or taken back, within %s", before.Name, t.ScaleUp+t.Ready+t.Removal)}
}

// climber is whom a gentler cure was asked for, nil without: it may be away at any moment, so no other is taken meanwhile,
// not even one that has become more urgent.
func (s *State) climber() *Patient {
	for _, p := range s.patients() {
		if p.Rung != "" && p.Mark != nil {
			return p
		}
	}
	return nil
}

// same: nothing to be said again. A reason may be told in other numbers, or quote another error, each time; what a human
// can do about it is news.
func (d Decision) same(other Decision) bool {
	switch {
	case d.Verdict != other.Verdict || d.Rule != other.Rule || d.Relaxed != other.Relaxed || d.Domain != other.Domain:
		return false
	case d.Verdict == Escalate:
		return d.Reason == other.Reason // it names the step
	case d.Rule == ruleTurn:
		return d.Reason == other.Reason && d.Next == other.Next // it names the other machine
	default:
		return d.Next == other.Next
	}
}

func (d Decision) acts() bool {
	switch d.Verdict {
	case RolloutSurge, Surge, OwnerRemediation, Escalate:
		return true
	default:
		return false
	}
}

// byUrgency orders unhealthy machines: first those whose etcd does not answer, then those with broken components, then
// the rest; in each group, the longest unhealthy first.
func byUrgency(s *State, f *Facts) []*Patient {
	list := slices.DeleteFunc(s.patients(), func(p *Patient) bool {
		m := f.machine(p.Subject)
		return m == nil || m.Deleting || p.Mark == nil || p.Mark.State != Unhealthy
	})
	slices.SortStableFunc(list, func(a, b *Patient) int {
		return cmp.Or(cmp.Compare(f.urgency(a), f.urgency(b)), a.UnhealthyAt.Compare(b.UnhealthyAt))
	})
	return list
}

func (f *Facts) urgency(p *Patient) int {
	m := f.machine(p.Subject)
	switch {
	case !f.isControlPlane():
		return 0
	case !f.Owner.ExternalEtcd && !f.answers(m):
		return 0
	case len(m.broken(f.Owner.ExternalEtcd)) > 0:
		return 1
	default:
		return 2
	}
}

// answers says that a machine's own member of etcd was asked, and is well.
func (f *Facts) answers(m *Machine) bool {
	member := f.Etcd.member(m)
	return member != nil && member.Answers == object.True
}

// begin is the fact that starts what was decided.
func begin(p *Patient, m *Machine, f *Facts, d Decision, now time.Time) Event {
	attempt := p.Attempts + 1
	switch d.Verdict {
	case Escalate:
		rung, _ := p.nextRung(f.Policy.Ladder)
		return EscalationStarted{Machine: p.Subject, Rung: rung.Name, Object: rung.object(p.Name)}
	case OwnerRemediation:
		return HandedOver{Machine: p.Subject, Baseline: f.baseline(), Attempt: attempt}
	default:
		e := SurgeRequested{Machine: p.Subject, Method: d.Verdict, Relaxed: d.Relaxed, Baseline: f.baseline(), Attempt: attempt}
		e.From, e.To, e.Where = f.Owner.Replicas, f.Owner.Replicas, AtOwner
		if d.Verdict == RolloutSurge {
			e.Lever, e.Original, e.Pull = f.lever(m, now)
			return e
		}
		if f.Cluster.Topology {
			e.From, e.Where, e.Entry = f.Cluster.TopologyReplicas, AtTopology, f.Cluster.Entry
		}
		e.To = e.From + f.extra()
		return e
	}
}

// lever is how to make a machine outdated: by the documented one where the owner has it, else by what it was cloned from.
func (f *Facts) lever(m *Machine, now time.Time) (lever Lever, original, pull string) {
	if f.Owner.CertificateLever {
		return LeverCertificates, m.Certificates, now.UTC().Format(time.RFC3339)
	}
	return LeverClonedFrom, m.ClonedFrom, m.ClonedFrom + "-replaced-by-scute"
}

// extra is how many machines a surge by replicas asks for. An even number of them is refused where etcd is stacked. Of workers, their
// owner counts those that are being deleted as there, and deletes them first.
func (f *Facts) extra() int32 {
	if f.isControlPlane() {
		return 2 - int32(count(f.Owner.ExternalEtcd)) //nolint:gosec // 0 or 1
	}
	extra := int32(1)
	for i := range f.Machines {
		if f.Machines[i].Deleting {
			extra++
		}
	}
	return extra
}

func (f *Facts) baseline() []Subject {
	list := make([]Subject, 0, len(f.Machines))
	for i := range f.Machines {
		list = append(list, f.Machines[i].subject())
	}
	return list
}

// see keeps of the facts what a decision was taken on.
func see(f *Facts) Seen {
	q := Count(f.Etcd)
	seen := Seen{
		Replicas: f.Owner.Replicas, Machines: len(f.Machines), External: f.Owner.ExternalEtcd, Voters: q.Voters, Learners: q.Learners,
		Silent: q.Silent, Version: f.Owner.Version, MaxSurge: f.Owner.MaxSurge, PolicyName: f.Policy.Name, DryRun: f.Policy.DryRun,
	}
	if f.Etcd != nil {
		seen.EtcdError = f.Etcd.Err
		for _, m := range f.Etcd.Members {
			if m.Way != "" && m.Way != PortForward {
				seen.Ways = append(seen.Ways, m.Node+" by "+m.Way)
			}
		}
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		switch {
		case m.Deleting:
			seen.Deleting = append(seen.Deleting, m.Name)
		case f.isControlPlane() && len(m.broken(f.Owner.ExternalEtcd)) > 0:
			seen.Broken = append(seen.Broken, m.Name)
		}
		if m.ready(OwnerKind(f.Owner.Kind), f.Owner.ExternalEtcd) {
			seen.Ready++
		}
	}
	return seen
}
