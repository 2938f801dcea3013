package kit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
)

// Tail prints events that match its filter: the latest ones and, if Follow is set, new ones.
type Tail struct {
	Filter
	Follow bool
	// Lines is the number of the latest events to print; -1 means all.
	Lines  int
	Format cli.Format
}

// Check returns an error for invalid options.
func (t *Tail) Check(env *cli.Env) error {
	if t.Lines < -1 {
		return cli.Usagef("--lines is %d: it must be -1 or more", t.Lines)
	}
	return t.Filter.Check(env)
}

// Run prints events that match the filter, and returns their number. read returns the events of a
// commit.
func (t *Tail) Run(ctx context.Context, k *Kit, log *connect.Log, read func(eventlog.Record) ([]Event, error)) (shown int, err error) {
	head, err := log.Head(ctx)
	if err != nil {
		return 0, err
	}
	write := func(r eventlog.Record) error {
		events, err := read(r)
		if err != nil {
			return err
		}
		events = t.Select(events)
		shown += len(events)
		return k.WriteEvents(events, &t.Format)
	}
	var last []Event
	add := func(r eventlog.Record) error {
		head = max(head, r.Seq)
		if t.Lines < 0 {
			return write(r)
		}
		events, err := read(r)
		last = append(last, t.Select(events)...)
		last = last[max(0, len(last)-t.Lines):]
		return err
	}
	err = t.past(ctx, k, log, head, add)
	shown += len(last)
	if err = errors.Join(err, k.WriteEvents(last, &t.Format)); err == nil && t.Follow {
		if log.Static {
			k.Env.Notef("No events follow: no process writes to the log in %s.", log.Where)
			return shown, nil
		}
		err = log.Follow(ctx, head, write)
	}
	if err != nil && ctx.Err() != nil {
		err = cli.Interrupted(nil)
	}
	return shown, err
}

// past calls fn with those commits up to head that may contain a selected event.
func (t *Tail) past(ctx context.Context, k *Kit, log *connect.Log, head uint64, fn func(eventlog.Record) error) error {
	if t.Aggregate == "" {
		after, err := t.start(ctx, log, head)
		if err == nil {
			_, err = log.Replay(ctx, after, fn)
		}
		return err
	}
	aggregate, err := ParseAggregate(t.Aggregate)
	if err != nil {
		return err
	}
	records, err := log.Read(ctx, aggregate, 0)
	if err == nil && len(records) == 0 && !t.Follow {
		err = fmt.Errorf("the log at %s has no aggregate %s: %s lists all aggregates", log.Where, aggregate, k.Hint("", "log", "replay"))
	}
	for _, r := range records {
		if err == nil {
			err = fn(r)
		}
	}
	return err
}

// clockSkew is how much earlier than the event's own time a commit may be stored, because the
// clocks differ.
const clockSkew = 5 * time.Minute

// start returns the sequence before the first commit that must be read.
func (t *Tail) start(ctx context.Context, log *connect.Log, head uint64) (after uint64, err error) {
	if t.Cluster != "" || t.Machine != "" { // earlier events determine the subjects of later ones
		return 0, nil
	}
	if !t.Since.IsZero() {
		earlier, err := log.Until(ctx, t.Since.Add(-clockSkew-1)) // the last commit before that time
		if err != nil {
			return 0, err
		}
		after = earlier.Seq
	}
	if t.All() && t.Lines >= 0 && head > uint64(t.Lines) {
		after = max(after, head-uint64(t.Lines)) // each commit has at least one event
	}
	return after, nil
}
