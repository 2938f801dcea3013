package remediator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ClaimedBy is the process that has claimed the owner last.
func (s *State) ClaimedBy() string { return s.Holder }

// Apply folds one event, decided at the given time, into the state. It accepts any event in any state: what the log
// holds has happened.
func (s *State) Apply(e Event, at time.Time) {
	switch e.(type) {
	case Setback, Claimed:
	default:
		s.Setback, s.SetbackSince = "", time.Time{}
	}
	switch e := e.(type) {
	case Registered:
		s.Owner = e.Owner
	case Claimed:
		s.Holder = e.Holder
	case MachineMarked:
		s.marked(e, at)
	case MachineMarkCleared:
		s.cleared(e, at)
	case Decided:
		p := s.patient(e.Machine)
		p.Decision, p.Seen, p.DecidedAt = e.Decision, e.Seen, at
		s.InStorm = s.InStorm || e.Decision.Rule == RuleStorm
		s.Mass.waits(e.Decision)
	case HoldSet:
		p := s.patient(e.Machine)
		p.Held, p.HoldUntil, p.HoldWhy, p.HeldBy = true, e.Until, e.Reason, e.Request
	case HoldReleased:
		p := s.patient(e.Machine)
		p.Held, p.HoldUntil, p.HoldWhy, p.HeldBy, p.Aborted, p.AbortedBy = false, time.Time{}, "", "", false, ""
		p.Attempts, p.Surprised, p.Unplaced = 0, false, false
	case AbortRequested:
		p := s.patient(e.Machine)
		p.Aborted, p.AbortedBy = true, e.Request
	case EscalationStarted:
		p := s.patient(e.Machine)
		s.start(p, at)
		p.Rung, p.RungSince, p.LastAttempt = e.Rung, at, at
		p.makes(e)
	case EscalationEnded:
		p := s.patient(e.Machine)
		p.Rung, p.RungSince = "", time.Time{}
		p.Climbed = append(p.Climbed, e.Rung)
	case NodeOutOfService:
		s.patient(e.Machine).OutOfService = e.Why
	case NodeInService:
		s.patient(e.Machine).OutOfService = ""
	case SurgeRequested:
		s.begin(e, at)
	case HandedOver:
		s.begin(SurgeRequested{Machine: e.Machine, Method: OwnerRemediation, Baseline: e.Baseline, Attempt: e.Attempt}, at)
	case StormPassed:
		s.InStorm, s.StormPassed = false, at
	case MassFailurePassed:
		s.Mass.passes(e.Domain, at)
	case Setback:
		if s.Setback == "" {
			s.SetbackSince = at
		}
		s.Setback = e.Message
	default:
		if s.Active != nil {
			s.applyActive(e, at)
		}
	}
}

func (s *State) marked(e MachineMarked, at time.Time) {
	p := s.patient(e.Machine)
	if p.Mark == nil {
		*p = p.remembered()
		p.MarkedAt = at
		if !p.ClearedAt.IsZero() && at.Sub(p.ClearedAt) > proven {
			p.Attempts, p.Unplaced = 0, false
		}
	}
	if e.State != Failing && p.UnhealthyAt.IsZero() {
		p.UnhealthyAt = at
	}
	if e.State == Failing {
		p.UnhealthyAt = time.Time{}
	}
	mark := e
	p.Mark = &mark
}

func (s *State) cleared(e MachineMarkCleared, at time.Time) {
	p := s.patient(e.Machine)
	if p.Mark != nil && p.Mark.State != Failing && (s.Active == nil || s.Active.Victim.UID != e.Machine.UID) && !s.endedSince(e.Machine.UID, p.MarkedAt) {
		s.end(End{Victim: e.Machine, Outcome: EndRecovered, Cause: e.Cause, Note: e.Why, MarkedAt: p.MarkedAt, StepSince: p.RungSince, EndedAt: at, Reason: p.Mark.Reason, Decision: p.Decision, Seen: p.Seen, Attempts: p.Attempts})
	}
	*p = p.remembered()
	p.ClearedAt = at
	s.forget()
}

// makes remembers the object of a step.
func (p *Patient) makes(e EscalationStarted) {
	if e.Object == nil {
		return
	}
	if p.Objects == nil {
		p.Objects = make(map[string]StepObject)
	}
	p.Objects[e.Rung] = *e.Object
}

// remembered is what outlives an illness: consent, what was tried, and what was made for it, live as long as the machine.
func (p *Patient) remembered() Patient {
	return Patient{
		Subject: p.Subject, Objects: p.Objects, OutOfService: p.OutOfService, ClearedAt: p.ClearedAt, Attempts: p.Attempts, LastAttempt: p.LastAttempt, Surprised: p.Surprised, Unplaced: p.Unplaced,
		Held: p.Held, HoldUntil: p.HoldUntil, HoldWhy: p.HoldWhy, HeldBy: p.HeldBy, Aborted: p.Aborted, AbortedBy: p.AbortedBy,
	}
}

// counted says that the next step for the machine continues what has begun. The escalation steps and the first
// replacement after them count as one remediation.
func (p *Patient) counted() bool { return p.Attempts == 0 && len(p.Climbed) > 0 }

// start counts what is begun for a machine.
func (s *State) start(p *Patient, at time.Time) {
	if p.counted() {
		return
	}
	s.Starts = append(s.Starts, at)
	if extra := len(s.Starts) - keptStarts; extra > 0 {
		s.Starts = slices.Delete(s.Starts, 0, extra)
	}
}

// endedSince says that a remediation of the machine ended in this illness.
func (s *State) endedSince(uid types.UID, since time.Time) bool {
	return slices.ContainsFunc(s.Ends, func(e End) bool { return e.Victim.UID == uid && e.EndedAt.After(since) && e.Outcome == EndSucceeded })
}

func (s *State) begin(e SurgeRequested, at time.Time) {
	s.Active = &Active{Victim: e.Machine, Request: e, Step: Requesting, Since: at, StartedAt: at}
	p := s.patient(e.Machine)
	s.start(p, at)
	p.Attempts, p.LastAttempt = e.Attempt, at
	if p.Mark != nil {
		s.Active.FailureDomain = p.Mark.FailureDomain
	}
}

func (s *State) applyActive(e Event, at time.Time) {
	a := s.Active
	switch e := e.(type) {
	case ReplacementObserved:
		if e.Extra {
			a.Extras = append(a.Extras, e.Replacement)
			return
		}
		if a.Replacement = e.Replacement; a.Ready && a.Step == Removing {
			a.Step, a.Since = Replacing, at // the one that was ready is gone
		}
		a.Ready = false
		a.step(Replacing, at)
	case SurgeRelaxed:
		a.Request.Relaxed = true
		s.patient(a.Victim).Decision.Relaxed = true
	case ScaleRaised:
		a.Scale = ScaleUp
	case ScaleRestored:
		a.Scale = ScaleBack
	case VictimSpared:
		a.step(Sparing, at)
	case ReplacementReady:
		a.uncancel() // it was given up, and became ready after all
		a.Replacement, a.Ready = e.Replacement, true
		a.step(Removing, at)
	case VictimDeleting:
		a.uncancel()
		a.step(Deleting, at)
	case DrainSkipped:
		a.SkipsDrain = true
	case VolumeDetachSkipped:
		a.SkipsDetach = true
	case VictimGone:
		a.uncancel()
		a.step(Settling, at)
	case SurgeConsumed:
		victim := s.patient(a.Victim)
		s.finish(End{Outcome: EndCancelled, Note: e.Why}, at)
		victim.LastAttempt = time.Time{} // not caused by the machine: no cooldown
		victim.Surprised = e.Surprise
	case CancelStarted:
		a.Cause, a.Reason = e.Cause, e.Reason
		if a.Step != Settling { // of a machine that is gone, nothing is taken back
			a.Step, a.Since = Cancelling, at
		}
	case Frozen:
		if a.Frozen == "" {
			a.FrozenAt = at
		}
		a.Frozen, a.FrozenReason, a.FrozenNext = e.Rule, e.Reason, e.Next
	case Thawed:
		if a.Frozen != "" {
			since := a.FrozenAt
			if a.Since.After(since) {
				since = a.Since
			}
			a.Since = a.Since.Add(at.Sub(since)) // no action was possible: that time does not count
		}
		a.Frozen, a.FrozenReason, a.FrozenNext = "", "", ""
	case Succeeded:
		s.succeed(e, at)
	case Cancelled:
		if a.Step == Settling {
			s.chain(at) // the place is taken, by a machine that is not well
		}
		victim := s.patient(a.Victim)
		s.finish(End{Outcome: EndCancelled, Cause: e.Cause, Note: a.Reason}, at)
		victim.Unplaced = victim.Unplaced || e.Cause == TimedOut && a.Request.Method != OwnerRemediation && !a.Ready
		if slices.Contains([]Cause{Superseded, Held, Unsafe}, e.Cause) { // it was not tried: no attempt, and no cooldown
			victim.Attempts, victim.LastAttempt = max(victim.Attempts-1, 0), time.Time{}
		}
		if e.Cause == Worsened { // it is one attempt, or what comes and goes would be tried without end; the next follows at once
			victim.LastAttempt = time.Time{}
		}
	}
}

// uncancel: the owner deleted the old machine after all. Then the new machines must stay.
func (a *Active) uncancel() {
	if a.takingBack() {
		a.Step, a.Cause = Requesting, ""
	}
}

// step goes forward only.
func (a *Active) step(to Step, at time.Time) {
	order := []Step{Requesting, Replacing, Removing, Deleting, Settling, Cancelling, Sparing}
	if slices.Index(order, to) > slices.Index(order, a.Step) {
		a.Step, a.Since = to, at
	}
}

func (s *State) succeed(e Succeeded, at time.Time) {
	s.chain(at)
	s.finish(End{Outcome: EndSucceeded, Note: e.Note}, at)
}

// chain remembers that the replacement took the place of a machine that may itself have been one.
func (s *State) chain(at time.Time) {
	a := s.Active
	maps.DeleteFunc(s.Chain, func(uid types.UID, l Link) bool {
		p := s.Patients[uid]
		return at.Sub(l.At) > proven && (p == nil || p.Mark == nil)
	})
	if a.Replacement.UID == "" {
		return
	}
	if s.Chain == nil {
		s.Chain = make(map[types.UID]Link)
	}
	s.Chain[a.Replacement.UID] = Link{Length: s.chained(s.patient(a.Victim)) + 1, At: at}
	delete(s.Chain, a.Victim.UID)
}

// chained is how many replacements in a row failed before this machine.
func (s *State) chained(p *Patient) int {
	l := s.Chain[p.UID]
	if p.MarkedAt.Sub(l.At) > proven {
		return 0
	}
	return l.Length
}

func (s *State) finish(end End, at time.Time) {
	a := s.Active
	p := s.patient(a.Victim)
	end.Victim, end.Replacement, end.Method, end.Relaxed = a.Victim, a.Replacement, a.Request.Method, a.Request.Relaxed
	end.StartedAt, end.EndedAt, end.MarkedAt, end.Attempts = a.StartedAt, at, p.MarkedAt, p.Attempts
	end.Decision, end.Seen = p.Decision, p.Seen
	if p.Mark != nil {
		end.Reason = p.Mark.Reason
	}
	p.LastAttempt = at
	s.Active = nil
	s.end(end)
	if a.Step == Settling || a.Step == Deleting {
		delete(s.Patients, a.Victim.UID)
	}
	s.forget()
}

func (s *State) end(e End) {
	s.Ends = append(s.Ends, e)
	if extra := len(s.Ends) - keptEnds; extra > 0 {
		s.Ends = slices.Delete(s.Ends, 0, extra)
	}
}

// forget bounds the size of a state: of the machines that are healthy again, the last few are retained. An abort or a hold of an operator
// lives as long as its machine, and nothing says when a healthy one is gone: more of them are retained than anybody writes by hand.
func (s *State) forget() {
	const kept, orders = 32, 1000
	var well []*Patient
	ordered := 0
	for _, p := range s.Patients {
		if p.Mark == nil {
			well = append(well, p)
			ordered += count(p.ordered())
		}
	}
	remembered := kept + min(ordered, orders)
	if len(well) <= remembered {
		return
	}
	slices.SortFunc(well, func(a, b *Patient) int {
		return cmp.Or(cmp.Compare(count(b.ordered()), count(a.ordered())), b.ClearedAt.Compare(a.ClearedAt), cmp.Compare(a.UID, b.UID))
	})
	for _, p := range well[remembered:] {
		delete(s.Patients, p.UID)
		delete(s.Chain, p.UID)
	}
}
