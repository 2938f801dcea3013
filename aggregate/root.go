package aggregate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scute.dev/eventlog"
)

const (
	// commitBytes bounds the data of one commit, far below the log's message limit. What is larger is split in its order; the
	// last event of a decision is the one that counts.
	commitBytes = 512 << 10
	// eventBytes bounds the data of one event, which is never split. A message takes 1 MiB at least, headers included.
	eventBytes = 960 << 10
)

// ErrLost says that another process has claimed the object.
var ErrLost = errors.New("another process has claimed it")

// UnreadableError is an object of which the log holds something that this program cannot read. Its state is that of before.
type UnreadableError struct {
	// Last is the last commit about the object, read or not.
	Last uint64
	Err  error
}

func (u *UnreadableError) Error() string { return u.Err.Error() }

// Unwrap gives what could not be read, such as eventlog.ErrUnknownType.
func (u *UnreadableError) Unwrap() error { return u.Err }

// Log is what a Root needs of the event log.
type Log interface {
	// Append stores a commit if its aggregate is still at the sequence that the commit expects, else eventlog.ErrConflict.
	Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error)
	// Read gives the commits of an aggregate after a sequence, in their order.
	Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error)
}

// State is what the events of an object are folded into.
type State[E any] interface {
	// Apply takes one event in. It is total: what the log holds has happened.
	Apply(event E, at time.Time)
	// ClaimedBy is the process that has claimed the object last, "" without.
	ClaimedBy() string
}

// Root is one object as the log has it. The exported fields but State and Seq are set before use and not changed. It is not safe
// for concurrent use.
type Root[E any, S State[E]] struct {
	Log     Log
	Catalog *eventlog.Catalog[E]
	Name    eventlog.Aggregate
	// Actor is the author of what is stored.
	Actor string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Plain says that an event comes out of the log exactly as it went in, so that it need not be decoded to be applied. May
	// be nil: then none does.
	Plain func(E) bool
	// Links relate an event to others, by the state before it. May be nil: then no event names its cause.
	Links func(S, E) Links

	// Seen is called with each event of the object as it is stored, before the state has it if others appended it. May be nil.
	Seen func(eventlog.Event)

	// State is what was read, and what was recorded since. Seq is the last commit in it that is stored.
	State S
	Seq   uint64

	pending []recorded // and not stored
	causes  Causes
	linked  uint64 // the last commit that the causes know
}

// recorded is an event as it is stored.
type recorded struct {
	eventlog.Event
	links Links
}

// Read folds in what others have appended, as far as it can be read; else it is an *UnreadableError. It is not called while something is recorded and not stored: see Reload.
func (r *Root[E, S]) Read(ctx context.Context) error {
	records, err := r.Log.Read(ctx, r.Name, r.Seq)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := r.fold(record); err != nil {
			return &UnreadableError{Last: records[len(records)-1].Seq, Err: err}
		}
		r.Seq = record.Seq
	}
	return nil
}

// fold takes a commit in. The causes take it in as well unless they lack one before it: see recall.
func (r *Root[E, S]) fold(record eventlog.Record) error {
	links := r.Links != nil && r.linked == r.Seq
	err := r.Catalog.Each(record, func(e E, stored eventlog.Event) {
		if links {
			r.link(e, stored)
		}
		if r.Seen != nil {
			r.Seen(stored)
		}
		r.State.Apply(e, stored.Time)
	})
	if err == nil && links {
		r.linked = record.Seq
	}
	return err
}

// Reload forgets what was recorded and not stored, and reads the object from its beginning into an empty state.
func (r *Root[E, S]) Reload(ctx context.Context, empty S) error {
	r.Seq, r.State, r.pending, r.causes, r.linked = 0, empty, nil, Causes{}, 0
	return r.Read(ctx)
}

// Refresh folds in what others have appended. It is ErrLost when one of them has claimed the object.
func (r *Root[E, S]) Refresh(ctx context.Context, claimant string) error {
	if err := r.Read(ctx); err != nil {
		return err
	}
	return r.Held(claimant)
}

// Held is ErrLost, with the name of the other one, unless this process was the last that has claimed the object.
func (r *Root[E, S]) Held(claimant string) error {
	if now := r.State.ClaimedBy(); now != claimant {
		return fmt.Errorf("%s: %w: %s", r.Name.ID, ErrLost, now)
	}
	return nil
}

// Time is now as the log gives it back.
func (r *Root[E, S]) Time() time.Time {
	if r.Now != nil {
		return r.Now().UTC().Round(0)
	}
	return time.Now().UTC().Round(0)
}

// Append stores events and applies them, as they are decided now. Of events that do not all fit into the log none is stored:
// what comes before the one that does not would be stored again by each try.
func (r *Root[E, S]) Append(ctx context.Context, events ...E) error {
	at := r.Time()
	events, encoded, err := r.encode(at, events)
	if err != nil {
		return err
	}
	for len(encoded) > 0 {
		n, err := r.commit(ctx, encoded)
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			r.State.Apply(e, at)
		}
		events, encoded = events[n:], encoded[n:]
	}
	return nil
}

// Decide appends what follows from the state; no events are nothing to say. When somebody else wrote first, read takes in what they did,
// and it is decided again: Read, or Refresh where the object must still be claimed.
func (r *Root[E, S]) Decide(ctx context.Context, read func(context.Context) error, decide func(S) ([]E, error)) error {
	for {
		events, err := decide(r.State)
		if err != nil || len(events) == 0 {
			return err
		}
		if err := r.Append(ctx, events...); !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
		if err := read(ctx); err != nil {
			return err
		}
	}
}

// Record applies events that were decided at a time, so that more can be decided on them. Store makes them durable;
// until then they must not be reported, and no effect may follow from them.
func (r *Root[E, S]) Record(at time.Time, events ...E) error {
	events, encoded, err := r.encode(at, events)
	if err != nil {
		return err
	}
	r.pending = append(r.pending, encoded...)
	for _, e := range events {
		r.State.Apply(e, at)
	}
	return nil
}

// Store appends what was recorded. After an error the state is ahead of the log: Reload.
func (r *Root[E, S]) Store(ctx context.Context) error {
	for len(r.pending) > 0 {
		n, err := r.commit(ctx, r.pending)
		if err != nil {
			return err
		}
		r.pending = r.pending[n:]
	}
	r.pending = nil
	return nil
}

// encode gives events as they are stored, and as they will be read back.
func (r *Root[E, S]) encode(at time.Time, events []E) (read []E, encoded []recorded, err error) {
	read, encoded = make([]E, len(events)), make([]recorded, len(events))
	for i, e := range events {
		ev, err := r.Catalog.Encode(e)
		if err != nil {
			return nil, nil, err
		}
		if len(ev.Data) > eventBytes {
			return nil, nil, fmt.Errorf("%w: the event %s takes %d bytes, and one may take %d", eventlog.ErrTooLarge, ev.Type, len(ev.Data), eventBytes)
		}
		ev.Time, ev.Actor, ev.Correlation = at, r.Actor, r.Name.ID
		if r.Plain == nil || !r.Plain(e) {
			if e, err = r.Catalog.Decode(ev); err != nil {
				return nil, nil, err
			}
		}
		read[i], encoded[i] = e, recorded{Event: ev}
		if r.Links != nil {
			encoded[i].links = r.Links(r.State, e)
		}
	}
	return read, encoded, nil
}

// commit stores as many of the events as one commit may hold, one at least, and says how many.
func (r *Root[E, S]) commit(ctx context.Context, events []recorded) (int, error) {
	if err := r.recall(ctx); err != nil {
		return 0, err
	}
	commit := eventlog.Commit{Aggregate: r.Name, Expected: r.Seq, Events: make([]eventlog.Event, 0, len(events))}
	links := make([]Links, 0, len(events))
	for size := 0; len(links) < len(events); {
		e := events[len(links)]
		if size += len(e.Data); len(links) > 0 && size > commitBytes {
			break
		}
		commit.Events, links = append(commit.Events, e.Event), append(links, e.links)
	}
	commit.ID = commit.IDFor(r.Actor)
	stored := r.causes.set(&commit, links)
	receipt, err := r.Log.Append(ctx, commit)
	if err != nil {
		return 0, err
	}
	stored()
	for i := range commit.Events {
		if r.Seen != nil {
			r.Seen(commit.Events[i])
		}
	}
	r.Seq, r.linked = receipt.Seq, receipt.Seq
	return len(links), nil
}
