package schedule

import "scute.dev/aggregate"

// Links relate the events of one attempt, and those that asked for it.
func Links(_ *State, event Event) aggregate.Links {
	backup := func(id string) aggregate.Key { return aggregate.Key{What: "backup", Name: id} }
	switch e := event.(type) {
	case Configured:
		return aggregate.Links{Is: []aggregate.Key{{What: "configured"}}}
	case Asked:
		return aggregate.Links{Is: []aggregate.Key{{What: "asked", Name: e.Value}}}
	case Started:
		l := aggregate.Links{Is: []aggregate.Key{backup(e.ID)}, Of: []aggregate.Key{{What: "configured"}}}
		if e.Request != "" {
			l.Of = []aggregate.Key{{What: "asked", Name: e.Request}}
		}
		return l
	case Completed:
		return aggregate.Links{Is: []aggregate.Key{{What: "completed"}}, Of: []aggregate.Key{backup(e.ID)}, Ends: []aggregate.Key{backup(e.ID)}}
	case Failed:
		return aggregate.Links{Of: []aggregate.Key{backup(e.ID)}}
	case RemovalStarted, Removed:
		return aggregate.Links{Of: []aggregate.Key{{What: "completed"}, {What: "configured"}}}
	default:
		return aggregate.Links{}
	}
}
