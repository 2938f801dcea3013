package runner

import (
	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// root is the aggregate of an owner, or of the turnstile.
type root = aggregate.Root[remediator.Event, *remediator.State]

func (r *Runner) root(id string, state *remediator.State, seq uint64) *root {
	made := &root{
		Log: r.Log, Catalog: remediator.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: id},
		Actor: "daemon/" + r.Incarnation, Now: r.now, State: state, Seq: seq,
	}
	if id != turnstile { // its events have no causes, and there are many
		made.Links = remediator.Links
	}
	return made
}
