package request

import "scute.dev/aggregate"

// What the keys of events name.
const (
	linkStep = "step" // what the current step follows from
	linkPart = "part" // what was seen of it last
)

// Links relate a fact to others of the pause. What a person asks for follows from nothing.
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
	default: // something was observed
		return aggregate.Links{}
	}
}
