package request

import "scute.dev/aggregate"

const (
	linkStep = "step" // the cause of the current step
	linkPart = "part" // the last progress of the step
)

// Links returns the links of an event to earlier events of the pause. s is the state before the
// event. A user's request has no cause.
func Links(s *State, e Event) aggregate.Links {
	step, part := aggregate.Key{Kind: linkStep}, aggregate.Key{Kind: linkPart}
	keys := func(of ...aggregate.Key) []aggregate.Key { return of }
	switch e.(type) {
	case Requested, ReleaseRequested:
		return aggregate.Links{Keys: keys(step)}
	case Claimed:
		if s.Phase != "" && s.Holder == "" {
			return aggregate.Links{Keys: keys(step), CauseKeys: keys(step)}
		}
		return aggregate.Links{}
	case Intended, Paused, Restored, Released:
		return aggregate.Links{Keys: keys(step), CauseKeys: keys(step)}
	case AllAcknowledged, TimedOut:
		return aggregate.Links{CauseKeys: keys(step, part)}
	case Acknowledged, Waiting:
		return aggregate.Links{Keys: keys(part), CauseKeys: keys(step)}
	default: // an observation without a cause
		return aggregate.Links{}
	}
}
