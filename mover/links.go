package mover

import "scute.dev/aggregate"

// Kinds of aggregate.Key.
const (
	linkStep  = "step"  // the cause of the current step
	linkPart  = "part"  // the last progress of the step
	linkAbort = "abort" // an operator's request
)

// Links returns the links of an event to earlier events of the move. s is the state before the
// event. A request of an operator, a claim of another process, and a lost log have no cause.
func Links(s *State, e Event) aggregate.Links {
	step, part, abort := aggregate.Key{Kind: linkStep}, aggregate.Key{Kind: linkPart}, aggregate.Key{Kind: linkAbort}
	keys := func(of ...aggregate.Key) []aggregate.Key { return of }
	switch e := e.(type) {
	case Requested, LogLost, TargetAbandoned:
		return aggregate.Links{Keys: keys(step)}
	case Claimed:
		if s.Phase != PhasePending {
			return aggregate.Links{}
		}
		return aggregate.Links{Keys: keys(step), CauseKeys: keys(step)}
	case Resolved:
		if s.Lost != nil && s.Abort {
			return aggregate.Links{Keys: keys(step), CauseKeys: keys(abort)}
		}
		return aggregate.Links{Keys: keys(step)}
	case AbortRequested:
		return aggregate.Links{Keys: keys(abort)}
	case AbortRefused:
		return aggregate.Links{CauseKeys: keys(abort)}
	case RollbackStarted:
		if s.Abort && e.Reason == s.abortReason() {
			return aggregate.Links{Keys: keys(step), CauseKeys: keys(abort)}
		}
		return aggregate.Links{Keys: keys(step), CauseKeys: keys(step)}
	case BaselineTaken, Acknowledged, PlanDrafted, Created, Deleted, Resumed, Removed:
		return aggregate.Links{Keys: keys(part), CauseKeys: keys(step)}
	case Failed:
		return aggregate.Links{Keys: keys(step), CauseKeys: keys(step)}
	case Waiting, TransientFailure, Refused, Abandoned:
		return aggregate.Links{CauseKeys: keys(step)}
	case Succeeded, RolledBack:
		return aggregate.Links{CauseKeys: keys(step, part)}
	default: // the step is complete
		return aggregate.Links{Keys: keys(step), CauseKeys: keys(step, part)}
	}
}
