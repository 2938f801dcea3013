package request

import "scute.dev/aggregate"

// The names of the keys of events.
const (
	linkStep = "step" // the cause of the current step
	linkPart = "part" // the last progress of the step
)

// Links returns the links of an event to earlier events of the pause; s is the state before it. A user's request has no cause.
func Links(s *State, e Event) aggregate.Links {
	step, part := aggregate.Key{What: linkStep}, aggregate.Key{What: linkPart}
	keys := func(of ...aggregate.Key) []aggregate.Key { return of }
	switch e.(type) {
	case Requested, ReleaseRequested:
		return aggregate.Links{Is: keys(step)}
	case Claimed:
		if s.Phase != "" && s.Holder == "" {
			return aggregate.Links{Is: keys(step), Of: keys(step)}
		}
		return aggregate.Links{}
	case Intended, Paused, Restored, Released:
		return aggregate.Links{Is: keys(step), Of: keys(step)}
	case AllAcknowledged, TimedOut:
		return aggregate.Links{Of: keys(step, part)}
	case Acknowledged, Waiting:
		return aggregate.Links{Is: keys(part), Of: keys(step)}
	default: // an observation without a cause
		return aggregate.Links{}
	}
}
