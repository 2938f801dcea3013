package mover

import "scute.dev/aggregate"

// The names of the keys of events.
const (
	linkStep  = "step"  // the cause of the current step
	linkPart  = "part"  // the last progress of the step
	linkAbort = "abort" // an operator's request
)

// Links returns the links of an event to earlier events of the move; s is the state before it. An operator's request, the claim of another process,
// and the observation that the log was replaced have no cause.
func Links(s *State, e Event) aggregate.Links {
	step, part, abort := aggregate.Key{What: linkStep}, aggregate.Key{What: linkPart}, aggregate.Key{What: linkAbort}
	keys := func(of ...aggregate.Key) []aggregate.Key { return of }
	switch e := e.(type) {
	case Requested, LogLost, TargetAbandoned:
		return aggregate.Links{Is: keys(step)}
	case Claimed:
		if s.Phase != PhasePending {
			return aggregate.Links{}
		}
		return aggregate.Links{Is: keys(step), Of: keys(step)}
	case Resolved:
		if s.Lost != nil && s.Abort {
			return aggregate.Links{Is: keys(step), Of: keys(abort)}
		}
		return aggregate.Links{Is: keys(step)}
	case AbortRequested:
		return aggregate.Links{Is: keys(abort)}
	case AbortRefused:
		return aggregate.Links{Of: keys(abort)}
	case RollbackStarted:
		if s.Abort && e.Reason == s.whyAborted() {
			return aggregate.Links{Is: keys(step), Of: keys(abort)}
		}
		return aggregate.Links{Is: keys(step), Of: keys(step)}
	case BaselineTaken, Acknowledged, PlanDrafted, Created, Deleted, Awoke, Removed:
		return aggregate.Links{Is: keys(part), Of: keys(step)}
	case Failed:
		return aggregate.Links{Is: keys(step), Of: keys(step)}
	case Waiting, TransientFailure, Refused, Abandoned:
		return aggregate.Links{Of: keys(step)}
	case Succeeded, RolledBack:
		return aggregate.Links{Of: keys(step, part)}
	default: // the step is complete
		return aggregate.Links{Is: keys(step), Of: keys(step, part)}
	}
}
