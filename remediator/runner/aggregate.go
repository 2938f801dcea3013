package runner

import (
	"context"
	"time"

	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// aggregate is one owner as the log has it: the state, and the sequence that the next append must build on.
type aggregate struct {
	log     Log
	catalog *eventlog.Catalog[remediator.Event]
	name    eventlog.Aggregate
	actor   string
	now     func() time.Time
	seq     uint64
	state   remediator.State
}

func (r *Runner) aggregate(id string, state *remediator.State, seq uint64) *aggregate {
	return &aggregate{
		log: r.Log, catalog: remediator.NewCatalog(), name: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: id},
		actor: "daemon/" + r.Incarnation, now: r.now, seq: seq, state: *state,
	}
}

// read folds in what the log holds beyond the known sequence.
func (a *aggregate) read(ctx context.Context) error {
	records, err := a.log.Read(ctx, a.name, a.seq)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := Fold(&a.state, a.catalog, record); err != nil {
			return &unreadableError{last: records[len(records)-1].Seq, err: err}
		}
		a.seq = record.Seq
	}
	return nil
}

// unreadableError says that the log holds something of an owner that this program cannot read.
type unreadableError struct {
	last uint64 // the sequence that the next append must build on
	err  error
}

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// Fold applies a stored commit to a state. On an error the state has not changed.
func Fold(s *remediator.State, catalog *eventlog.Catalog[remediator.Event], record eventlog.Record) error {
	return catalog.Fold(record, s.Apply)
}

// append stores events as one commit and applies them as a replay would.
func (a *aggregate) append(ctx context.Context, events ...remediator.Event) error {
	commit := eventlog.Commit{Aggregate: a.name, Expected: a.seq}
	now := a.now()
	for i, e := range events {
		ev, err := a.catalog.Encode(e)
		if err != nil {
			return err
		}
		ev.Time, ev.Actor, ev.Correlation, ev.Epoch = now, a.actor, a.name.ID, a.seq
		commit.Events = append(commit.Events, ev)
		if events[i], err = a.catalog.Decode(ev); err != nil {
			return err
		}
	}
	commit.ID = commit.IDFor(a.actor)
	receipt, err := a.log.Append(ctx, commit)
	if err != nil {
		return err
	}
	a.seq = receipt.Seq
	for _, e := range events {
		a.state.Apply(e, now)
	}
	return nil
}
