// Package histories writes saved histories of real clusters to logs, for display.
package histories

import (
	"context"
	"fmt"
	"path"
	"path/filepath"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/pinned"
	"scute.dev/test/assets"
)

// eventsOfACommit is the number of events of a commit.
const eventsOfACommit = 3

// Write appends histories to the log in a folder, which it creates. Each is named PACKAGE/NAME, and its subject gets
// the ID fleet/NAME/1. If change is not nil, it may change each event first.
func Write(ctx context.Context, dir string, change func(*eventlog.Event), list ...string) error {
	root, err := assets.Root()
	if err != nil {
		return err
	}
	log, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	for _, name := range list {
		if err := write(ctx, log, root, name, change); err != nil {
			_ = log.Close()
			return fmt.Errorf("writing the history %s: %w", name, err)
		}
	}
	return log.Close()
}

func write(ctx context.Context, log *eventlog.Log, root, name string, change func(*eventlog.Event)) error {
	in, base := path.Split(name)
	kind, known := map[string]eventlog.Kind{
		"mover/": eventlog.KindMove, "pause/request/": eventlog.KindPause, "remediator/": eventlog.KindRemediation,
	}[in]
	if !known {
		return fmt.Errorf("no package %s has histories", in)
	}
	events, err := pinned.Load(filepath.Join(root, in, "testdata", "histories", base+".jsonl"))
	if err != nil {
		return err
	}
	for i := range events {
		if change != nil {
			change(&events[i])
		}
	}
	c := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: kind, ID: "fleet/" + base + "/1"}}
	for len(events) > 0 {
		n := min(eventsOfACommit, len(events))
		c.Events, events = events[:n], events[n:]
		c.ID = c.IDFor("test")
		receipt, err := log.Append(ctx, c)
		if err != nil {
			return err
		}
		c.Expected = receipt.Seq
	}
	return nil
}
