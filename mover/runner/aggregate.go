package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scute.dev/eventlog"
	"scute.dev/mover"
)

// commitBytes bounds the data of one commit, far below the log's message limit. A decision that is larger is split in
// its order; its last event is the one that counts.
const commitBytes = 512 << 10

// eventBytes bounds the data of one event, which is never split. A message takes 1 MiB at least, headers included.
const eventBytes = 960 << 10

// aggregate is one move as the log has it: the state, and the sequence that the next append must build on.
type aggregate struct {
	runner  *Runner
	catalog *eventlog.Catalog[mover.Event]
	name    eventlog.Aggregate
	actor   string
	seq     uint64
	state   mover.State
}

func (r *Runner) aggregate(id string) *aggregate {
	return &aggregate{
		runner: r, catalog: mover.NewCatalog(), name: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id},
		actor: "daemon/" + r.Incarnation,
	}
}

func (r *Runner) load(ctx context.Context, id string) (*aggregate, error) {
	a := r.aggregate(id)
	return a, a.read(ctx)
}

// read folds in what the log holds beyond the known sequence.
func (a *aggregate) read(ctx context.Context) error {
	records, err := a.runner.Log.Read(ctx, a.name, a.seq)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := Fold(&a.state, a.catalog, record); err != nil {
			return err
		}
		a.seq = record.Seq
	}
	return nil
}

// Fold applies a stored commit to a state. On an error the state has not changed.
func Fold(s *mover.State, catalog *eventlog.Catalog[mover.Event], record eventlog.Record) error {
	return catalog.Fold(record, s.Apply)
}

// refresh takes in what others appended, and lets go when one of them has claimed the move.
func (a *aggregate) refresh(ctx context.Context) error {
	if err := a.read(ctx); err != nil {
		return err
	}
	if a.state.Holder != a.runner.Incarnation {
		return fmt.Errorf("%s: %w: %s", a.name.ID, ErrLost, a.state.Holder)
	}
	return nil
}

// decide records what follows from an outcome. When somebody else wrote first, their events are taken in and the
// decision is taken again.
func (a *aggregate) decide(ctx context.Context, o mover.Outcome) (int, error) {
	for {
		events, err := mover.Decide(&a.state, o, a.now())
		if err != nil || len(events) == 0 {
			return 0, err
		}
		err = a.append(ctx, events...)
		if !errors.Is(err, eventlog.ErrConflict) {
			return len(events), err
		}
		if err := a.refresh(ctx); err != nil {
			return 0, err
		}
	}
}

// interrupted says that a step under way is no longer what the state calls for.
func (a *aggregate) interrupted(step mover.Step) bool {
	if events, err := mover.Decide(&a.state, mover.Tick{}, a.now()); err != nil || len(events) > 0 {
		return true
	}
	return mover.Next(&a.state) != step
}

func (a *aggregate) now() time.Time {
	if a.runner.Now != nil {
		return a.runner.Now()
	}
	return time.Now()
}

// append stores events as one commit (or several, when they are large) and applies them. Nothing is stored of events that do not
// all fit into the log: what came before the one that does not would be stored again by each try.
func (a *aggregate) append(ctx context.Context, events ...mover.Event) error {
	encoded, err := a.encode(events)
	if err != nil {
		return err
	}
	for len(encoded) > 0 {
		commit := a.commit(encoded)
		receipt, err := a.runner.Log.Append(ctx, commit)
		if err != nil {
			return err
		}
		a.seq = receipt.Seq
		n := len(commit.Events)
		for i, e := range events[:n] {
			a.state.Apply(e, commit.Events[i].Time)
		}
		events, encoded = events[n:], encoded[n:]
	}
	return nil
}

func (a *aggregate) encode(events []mover.Event) ([]eventlog.Event, error) {
	encoded := make([]eventlog.Event, len(events))
	for i, e := range events {
		ev, err := a.catalog.Encode(e)
		if err != nil {
			return nil, err
		}
		if len(ev.Data) > eventBytes {
			return nil, fmt.Errorf("%w: the event %s takes %d bytes, and one may take %d", eventlog.ErrTooLarge, ev.Type, len(ev.Data), eventBytes)
		}
		encoded[i] = ev
	}
	return encoded, nil
}

// commit takes as many of the events as one commit may hold, and one at least.
func (a *aggregate) commit(events []eventlog.Event) eventlog.Commit {
	commit := eventlog.Commit{Aggregate: a.name, Expected: a.seq}
	now := a.now().UTC()
	size := 0
	for _, ev := range events {
		if size += len(ev.Data); len(commit.Events) > 0 && size > commitBytes {
			break
		}
		ev.Time, ev.Actor, ev.Correlation, ev.Epoch = now, a.actor, a.name.ID, a.seq
		commit.Events = append(commit.Events, ev)
	}
	commit.ID = commit.IDFor(a.actor)
	return commit
}
