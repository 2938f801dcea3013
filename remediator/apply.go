package remediator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ClaimedBy returns the process that claimed the owner last.
func (s *State) ClaimedBy() string { return s.Holder }

// Apply changes the state by one event, which was decided at the given time. It accepts any event
// in any state, because an event in the log has happened.
func (s *State) Apply(e Event, at time.Time) {
	if at.After(s.Last) {
		s.Last = at
	}
	switch e := e.(type) {
	case Registered:
		s.Owner = e.Owner
	case Claimed:
		s.Holder = e.Holder
	case MachineMarked:
		s.applyMarked(e, at)
	case MachineMarkCleared:
		s.applyMarkCleared(e, at)
	case Decided:
		u := s.recordOf(e.Machine)
		u.Decision, u.Evidence, u.DecidedAt = e.Decision, e.Evidence, at
		s.InMassFailure = s.InMassFailure || e.Decision.Rule == rulePolicyMassFailure
		s.Mass.recordWait(e.Decision)
	case HoldSet:
		u := s.recordOf(e.Machine)
		u.Held, u.HoldUntil, u.HoldReason, u.HeldBy = true, e.Until, e.Reason, e.Request
	case HoldReleased:
		u := s.recordOf(e.Machine)
		u.Held, u.HoldUntil, u.HoldReason, u.HeldBy, u.Aborted, u.AbortedBy = false, time.Time{}, "", "", false, ""
		u.Attempts, u.WrongMachineDeleted, u.ReplacementTimedOut, u.RolloutTimedOut = 0, false, false, false
		delete(s.Chain, e.Machine.UID)
		if u.Decision.Verdict == CannotRemediate { // to be decided again, even while another machine comes first
			u.Decision = Decision{}
		}
	case AbortRequested:
		u := s.recordOf(e.Machine)
		u.Aborted, u.AbortedBy = true, e.Request
	case EscalationStarted:
		u := s.recordOf(e.Machine)
		s.countStart(u, at)
		u.EscalationStep, u.EscalationSince, u.LastAttempt = e.Step, at, at
		if e.Object != nil {
			put(&u.Objects, e.Step, *e.Object)
		}
	case EscalationEnded:
		u := s.recordOf(e.Machine)
		u.EscalationStep, u.EscalationSince = "", time.Time{}
		u.CompletedSteps = append(u.CompletedSteps, e.Step)
	case SurgeRequested:
		s.applySurgeRequested(e, at)
	case HandedOver:
		s.applySurgeRequested(SurgeRequested{Machine: e.Machine, Method: OwnerRemediation, Baseline: e.Baseline, Attempt: e.Attempt}, at)
	case Continued:
		s.focus(e.Machine)
	case Merged:
		s.merge(e, at)
	case ClockSetBack:
		s.clampTimes(at)
	case PolicyMassFailurePassed:
		s.InMassFailure, s.MassFailureEnded = false, at
	case EtcdReported:
		s.Etcd = etcdReport{EtcdReported: e, At: at}
		s.Maintenance.apply(e, at)
	case DefragmentationWaits, DefragmentationStarted, DefragmentationEnded, NoSpaceDisarmed:
		s.Maintenance.apply(e, at)
	case MassFailurePassed:
		s.Mass.recordEnd(e.Domain, at)
	case TransientFailure:
		if s.Failure == "" {
			s.FailingSince = at
		}
		s.Failure = e.Message
	default:
		if _, frozen := e.(Frozen); !frozen { // the remediation has advanced, so its writes have succeeded
			s.clearFailure()
		}
		if s.Active != nil {
			s.applyActive(e, at)
		}
	}
}

func (s *State) clearFailure() { s.Failure, s.FailingSince = "", time.Time{} }

// put sets an entry of a map that may be nil.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

// last returns the last elements of a list, at most limit.
func last[T any](list []T, limit int) []T { return list[max(0, len(list)-limit):] }

func (s *State) applyMarked(e MachineMarked, at time.Time) {
	u := s.recordOf(e.Machine)
	if !u.marked() {
		*u = u.retained()
		u.MarkedAt = at
		if !u.ClearedAt.IsZero() && at.Sub(u.ClearedAt) > provenAfter {
			u.Attempts, u.ReplacementTimedOut, u.RolloutTimedOut, u.CompletedSteps = 0, false, false, nil
		}
		u.EarlierSteps = len(u.CompletedSteps)
	}
	if e.State == Failing {
		u.UnhealthyAt = time.Time{}
	} else if u.UnhealthyAt.IsZero() {
		u.UnhealthyAt = at
	}
	u.Mark = e
}

func (s *State) applyMarkCleared(e MachineMarkCleared, at time.Time) {
	u := s.recordOf(e.Machine)
	if u.marked() && u.Mark.State != Failing && s.activeOf(e.Machine.UID) == nil && !s.endedSince(e.Machine.UID, u.MarkedAt) {
		s.recordEnd(u, pastRemediation{Outcome: EndRecovered, Cause: e.Cause, Note: e.Reason, StepSince: u.EscalationSince}, at)
	}
	if u.EscalationStep != "" && e.Cause == Recovered { // the step helped; it is tried again only after the machine was healthy for longer than provenAfter
		u.CompletedSteps = append(u.CompletedSteps, u.EscalationStep)
	}
	*u = u.retained()
	u.ClearedAt = at
	s.prune()
}

// retained returns the part of the record that is kept after the machine recovers: holds and
// aborts, attempts, and the objects and names of escalation steps. The counts of attempts are reset
// once the machine has been healthy for longer than provenAfter.
func (u *UnhealthyMachine) retained() UnhealthyMachine {
	return UnhealthyMachine{
		Subject: u.Subject, Objects: u.Objects, CompletedSteps: u.CompletedSteps, ClearedAt: u.ClearedAt, Attempts: u.Attempts, LastAttempt: u.LastAttempt, WrongMachineDeleted: u.WrongMachineDeleted, ReplacementTimedOut: u.ReplacementTimedOut, RolloutTimedOut: u.RolloutTimedOut,
		Held: u.Held, HoldUntil: u.HoldUntil, HoldReason: u.HoldReason, HeldBy: u.HeldBy, Aborted: u.Aborted, AbortedBy: u.AbortedBy,
	}
}

// alreadyCounted reports whether the next start for the machine belongs to a remediation that was
// already counted. Escalation steps and the first replacement after them count as one remediation.
func (u *UnhealthyMachine) alreadyCounted() bool {
	return u.Attempts == 0 && len(u.CompletedSteps) > u.EarlierSteps
}

func (s *State) countStart(u *UnhealthyMachine, at time.Time) {
	if !u.alreadyCounted() {
		s.Starts = last(append(s.Starts, at), startsLimit)
	}
}

// endedSince reports whether a remediation of the machine has succeeded since a time.
func (s *State) endedSince(uid types.UID, since time.Time) bool {
	return slices.ContainsFunc(s.History, func(e pastRemediation) bool {
		return e.Victim.UID == uid && e.EndedAt.After(since) && e.Outcome == EndSucceeded
	})
}

func (s *State) applySurgeRequested(e SurgeRequested, at time.Time) {
	s.park(&e)
	s.clearFailure()
	u := s.recordOf(e.Machine)
	s.Active = &Active{Victim: e.Machine, Request: e, Step: requesting, Since: at, StartedAt: at, FailureDomain: u.Mark.FailureDomain}
	s.countStart(u, at)
	u.Attempts, u.LastAttempt = e.Attempt, at
}

func (s *State) applyActive(e Event, at time.Time) {
	a := s.Active
	switch e := e.(type) {
	case ReplacementObserved:
		if e.Extra {
			a.Extras = append(a.Extras, e.Replacement)
			return
		}
		a.Extras = slices.DeleteFunc(a.Extras, func(m Subject) bool { return m.UID == e.Replacement.UID })
		if a.Replacement = e.Replacement; a.Ready && a.Step == removing {
			a.Step, a.Since = replacing, at // the replacement that was ready is gone
		}
		a.Ready = false
		a.advance(replacing, at)
	case SurgeRelaxed:
		a.Request.Relaxed = true
		s.recordOf(a.Victim).Decision.Relaxed = true
	case ScaleRaised:
		a.Scale = scaleRaised
	case ScaleRestored:
		a.Scale = scaleRestored
	case VictimSpared:
		a.advance(sparing, at)
	case ReplacementReady:
		if a.isCancelling() { // it was cancelled, but the new machine is ready after all
			a.Resumed++
		}
		a.revertCancellation()
		a.Replacement, a.Ready = e.Replacement, true
		a.advance(removing, at)
	case VictimDeleting:
		a.revertCancellation()
		a.advance(deleting, at)
	case DrainSkipped:
		a.SkipsDrain = true
	case VolumeDetachSkipped:
		a.SkipsDetach = true
	case VictimGone:
		a.revertCancellation()
		a.advance(settling, at)
	case SurgeConsumed:
		victim := s.recordOf(a.Victim)
		s.finish(a, pastRemediation{Outcome: EndCancelled, Note: e.Reason}, at)
		victim.LastAttempt = time.Time{} // not caused by the machine: no cooldown
		victim.WrongMachineDeleted = e.WrongMachine
	case CancelStarted:
		a.Cause, a.Reason = e.Cause, e.Reason
		if a.Step != settling { // nothing is undone if the machine is gone
			a.Step, a.Since = cancelling, at
		}
	case Frozen:
		if a.Frozen == "" {
			a.FrozenAt = at
		}
		a.Frozen, a.FrozenReason, a.FrozenNext = e.Rule, e.Reason, e.Next
	case Thawed:
		if a.Frozen != "" {
			since := later(a.FrozenAt, a.Since)
			a.Since = a.Since.Add(at.Sub(since)) // no action was possible, so the time does not count
			for _, other := range s.Resting {
				other.Since = other.Since.Add(at.Sub(since))
			}
		}
		a.Frozen, a.FrozenReason, a.FrozenNext = "", "", ""
	case Succeeded:
		if e.Gone {
			a.Replacement = Subject{}
		}
		s.recordChain(at)
		s.finish(a, pastRemediation{Outcome: EndSucceeded, Note: e.Note}, at)
	case Cancelled:
		if a.Step == settling {
			s.recordChain(at) // the replacement exists, but is not healthy
		}
		victim := s.recordOf(a.Victim)
		s.finish(a, pastRemediation{Outcome: EndCancelled, Cause: e.Cause, Note: a.Reason}, at)
		if e.Cause == TimedOut && a.Request.Method == RolloutSurge && a.Replacement.UID == "" && !victim.RolloutTimedOut { // the next attempt raises the replicas
			victim.RolloutTimedOut, victim.Attempts = true, max(victim.Attempts-1, 0)
		}
		victim.ReplacementTimedOut = victim.ReplacementTimedOut || e.Cause == TimedOut && a.Request.Method != OwnerRemediation && !a.Ready
		if slices.Contains([]cause{Superseded, Held, Unsafe}, e.Cause) { // nothing was tried: no attempt, and no cooldown
			victim.revertAttempt()
		}
		if e.Cause == Worsened { // it counts as an attempt, because an intermittent failure would otherwise be retried forever; there is no cooldown
			victim.LastAttempt = time.Time{}
		}
	}
}

// revertAttempt subtracts the last attempt from the count, and removes its cooldown.
func (u *UnhealthyMachine) revertAttempt() {
	u.Attempts, u.LastAttempt = max(u.Attempts-1, 0), time.Time{}
}

// revertCancellation ends a cancellation, if one is in progress, because the new machine is ready
// or the owner deletes the old machine after all. The new machines must stay then.
func (a *Active) revertCancellation() {
	if a.isCancelling() {
		a.Step, a.Cause = requesting, ""
	}
}

// advance sets the step of the remediation, unless the remediation is already at that step or a
// later one.
func (a *Active) advance(to Step, at time.Time) {
	order := []Step{requesting, replacing, removing, deleting, settling, cancelling, sparing}
	if slices.Index(order, to) > slices.Index(order, a.Step) {
		a.Step, a.Since = to, at
	}
}

// recordChain records for the replacement how many consecutive replacements led to it, because the
// unhealthy machine may itself have been a replacement.
func (s *State) recordChain(at time.Time) {
	a := s.Active
	maps.DeleteFunc(s.Chain, func(uid types.UID, l chainLink) bool {
		return at.Sub(l.At) > provenAfter && !s.record(uid).marked()
	})
	if a.Replacement.UID == "" {
		return
	}
	put(&s.Chain, a.Replacement.UID, chainLink{Length: s.chainLength(s.recordOf(a.Victim)) + 1, At: at})
	delete(s.Chain, a.Victim.UID)
}

// chainLength returns the number of consecutive failed replacements that led to this machine. It
// returns 0 if the machine was healthy for longer than provenAfter.
func (s *State) chainLength(u *UnhealthyMachine) int {
	l := s.Chain[u.UID]
	if u.MarkedAt.Sub(l.At) > provenAfter {
		return 0
	}
	return l.Length
}

func (s *State) finish(a *Active, end pastRemediation, at time.Time) {
	u := s.recordOf(a.Victim)
	end.Replacement, end.Extras, end.Method, end.Relaxed, end.StartedAt = a.Replacement, a.Extras, a.Request.Method, a.Request.Relaxed, a.StartedAt
	u.LastAttempt = at
	s.removeActive(a)
	s.recordEnd(u, end, at)
	if a.Step == settling || a.Step == deleting {
		delete(s.Unhealthy, a.Victim.UID)
	}
	s.prune()
}

// recordEnd records the end of a remediation, or the recovery of a machine that had no remediation.
func (s *State) recordEnd(u *UnhealthyMachine, e pastRemediation, at time.Time) {
	e.Victim, e.EndedAt, e.MarkedAt, e.Attempts, e.Decision, e.Evidence = u.Subject, at, u.MarkedAt, u.Attempts, u.Decision, u.Evidence
	e.Reason = u.Mark.Reason
	s.History = last(append(s.History, e), historyLimit)
}

// prune bounds the size of a state. Of the machines that are healthy again, it keeps the records of
// the 32 that recovered last, and of up to 1000 more that have an operator's abort or hold. Such an
// order is valid as long as its machine exists, and the log does not contain the deletion of a
// healthy machine.
func (s *State) prune() {
	const kept, orders = 32, 1000
	var well []*UnhealthyMachine
	ordered := 0
	for _, u := range s.Unhealthy {
		if !u.marked() {
			well = append(well, u)
			ordered += boolToInt(u.hasOrder())
		}
	}
	remembered := kept + min(ordered, orders)
	if len(well) <= remembered {
		return
	}
	slices.SortFunc(well, func(a, b *UnhealthyMachine) int {
		return cmp.Or(cmp.Compare(boolToInt(b.hasOrder()), boolToInt(a.hasOrder())), b.ClearedAt.Compare(a.ClearedAt), cmp.Compare(a.UID, b.UID))
	})
	for _, u := range well[remembered:] {
		delete(s.Unhealthy, u.UID)
		delete(s.Chain, u.UID)
	}
}
