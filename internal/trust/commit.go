package trust

import (
	"time"

	"scute.dev/eventlog"
)

// Commit returns a commit of one event on the log's own aggregate, whose last commit is at seq.
func Commit(e Event, actor string, seq uint64, now time.Time) (eventlog.Commit, error) {
	ev, err := NewCatalog().Encode(e)
	if err != nil {
		return eventlog.Commit{}, err
	}
	ev.Time, ev.Actor = now.UTC(), actor
	c := eventlog.Commit{Aggregate: Aggregate(), Expected: seq, Events: []eventlog.Event{ev}}
	c.ID = c.IDFor(actor)
	return c, nil
}
