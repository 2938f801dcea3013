package remediator

import (
	"slices"

	"scute.dev/aggregate"
)

// The keys of events name what an event is about.
const (
	linkMark                 = "mark"      // of a machine
	linkCleared              = "cleared"   // the mark of a machine
	linkOrder                = "order"     // an operator's order about a machine
	linkDecided              = "decided"   // about a machine
	linkEscalationStart      = "escalates" // the start of an escalation step of a machine
	linkEscalationEnd        = "escalated" // the end of an escalation step
	linkStep                 = "step"      // a step of the active remediation
	linkFrozen               = "frozen"    // a freeze of the active remediation
	linkEnd                  = "end"       // the end of the last remediation
	linkPassed               = "passed"    // the last mass failure
	linkDefragmentationStart = "cares"     // the start of a defragmentation
	linkDefragmentationEnd   = "cared"     // the end of the last defragmentation
)

// Links returns the links of an event to others of the owner. s is the state before it, on which the keys of an event do not depend. Observations of
// a machine, orders of an operator, and claims of a process have no cause.
func Links(s *State, e Event) aggregate.Links {
	keys := func(of ...aggregate.Key) []aggregate.Key { return of }
	about := func(what string) aggregate.Key { return aggregate.Key{Kind: what} }
	of := func(what string, m Subject) aggregate.Key { return aggregate.Key{Kind: what, Name: string(m.UID)} }
	switch e := e.(type) {
	case Registered, Claimed, Admitted, ClockSetBack, EtcdReported, DefragmentationWaits:
		return aggregate.Links{}
	case DefragmentationStarted:
		return aggregate.Links{Keys: keys(about(linkDefragmentationStart))}
	case DefragmentationEnded:
		return aggregate.Links{Keys: keys(about(linkDefragmentationEnd)), CauseKeys: keys(about(linkDefragmentationStart))}
	case NoSpaceDisarmed:
		return aggregate.Links{CauseKeys: keys(about(linkDefragmentationEnd))}
	case PolicyMassFailurePassed, MassFailurePassed:
		return aggregate.Links{Keys: keys(about(linkPassed))}
	case HoldSet, HoldReleased, AbortRequested:
		return aggregate.Links{Keys: keys(of(linkOrder, SubjectOf(s, e)))}
	case MachineMarked:
		l := aggregate.Links{Keys: keys(of(linkMark, e.Machine))}
		if s.Unhealthy[e.Machine.UID].mark() != nil {
			l.CauseKeys = l.Keys
		}
		return l
	case MachineMarkCleared:
		return aggregate.Links{Keys: keys(of(linkCleared, e.Machine)), CauseKeys: keys(of(linkMark, e.Machine))}
	case Decided:
		l := aggregate.Links{Keys: keys(of(linkDecided, e.Machine)), CauseKeys: keys(of(linkMark, e.Machine), of(linkOrder, e.Machine), of(linkEscalationEnd, e.Machine))}
		return s.waitLinks(e, l)
	case EscalationStarted:
		return aggregate.Links{Keys: keys(of(linkEscalationStart, e.Machine)), CauseKeys: keys(of(linkDecided, e.Machine))}
	case EscalationEnded:
		l := aggregate.Links{Keys: keys(of(linkEscalationEnd, e.Machine)), CauseKeys: keys(of(linkEscalationStart, e.Machine))}
		if e.Outcome == StepCancelled && s.aborted(e.Machine) {
			l.CauseKeys = keys(of(linkOrder, e.Machine))
		}
		return l
	case SurgeRequested, HandedOver, Continued:
		return aggregate.Links{Keys: keys(about(linkStep)), CauseKeys: keys(of(linkDecided, SubjectOf(s, e)))}
	case Merged:
		return aggregate.Links{Keys: keys(about(linkEnd)), CauseKeys: keys(about(linkStep))}
	case CancelStarted:
		return aggregate.Links{Keys: keys(about(linkStep)), CauseKeys: keys(s.cancellationLink(e))}
	case Frozen:
		return aggregate.Links{Keys: keys(about(linkFrozen)), CauseKeys: keys(about(linkStep))}
	case Thawed:
		return aggregate.Links{CauseKeys: keys(about(linkFrozen))}
	case TransientFailure, DrainSkipped, VolumeDetachSkipped:
		return aggregate.Links{CauseKeys: keys(about(linkStep))}
	case Succeeded, Cancelled, SurgeConsumed:
		return aggregate.Links{Keys: keys(about(linkEnd)), CauseKeys: keys(about(linkStep))}
	default: // the active remediation has advanced
		return aggregate.Links{Keys: keys(about(linkStep)), CauseKeys: keys(about(linkStep))}
	}
}

// waitLinks adds the end of what the last decision waited for: the remediation of another machine or of this one, or a mass failure.
func (s *State) waitLinks(e Decided, l aggregate.Links) aggregate.Links {
	u := s.Unhealthy[e.Machine.UID]
	if u == nil || u.DecidedAt.IsZero() {
		return l
	}
	if slices.ContainsFunc(s.History, func(past PastRemediation) bool {
		return past.Outcome != EndRecovered && past.EndedAt.After(u.DecidedAt) && (past.Victim.UID == u.UID || u.Decision.Rule == ruleTurn)
	}) {
		l.CauseKeys = append(l.CauseKeys, aggregate.Key{Kind: linkEnd})
	}
	passed := s.MassFailureEnded
	if u.Decision.Rule != RulePolicyMassFailure {
		passed = s.Mass.Ended[u.Decision.Domain]
	}
	if slices.Contains([]string{RulePolicyMassFailure, ruleMassFailure, ruleFailureDomain}, u.Decision.Rule) && passed.After(u.DecidedAt) {
		l.CauseKeys = append(l.CauseKeys, aggregate.Key{Kind: linkPassed})
	}
	return l
}

// cancellationLink returns the cause of a cancellation: an operator's abort, or the recovery of the machine, or else the step that is undone.
func (s *State) cancellationLink(e CancelStarted) aggregate.Key {
	if s.Active == nil {
		return aggregate.Key{Kind: linkStep}
	}
	switch m := s.Active.Victim; {
	case e.Cause == Aborted && s.aborted(m):
		return aggregate.Key{Kind: linkOrder, Name: string(m.UID)}
	case e.Cause == Recovered && s.Unhealthy[m.UID].mark() == nil:
		return aggregate.Key{Kind: linkCleared, Name: string(m.UID)}
	default:
		return aggregate.Key{Kind: linkStep}
	}
}

// aborted reports whether an operator aborted the remediation of a machine.
func (s *State) aborted(m Subject) bool {
	u := s.Unhealthy[m.UID]
	return u != nil && u.Aborted
}
