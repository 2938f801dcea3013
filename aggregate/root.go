package aggregate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scute.dev/eventlog"
)

const (
	// commitBytes bounds the data of one commit, far below the log's limit of a message. More
	// events are split into several commits in order; the last event of a decision takes effect.
	commitBytes = 512 << 10
	// eventBytes bounds the data of one event, which is never split. A message may have at least 1
	// MiB with headers.
	eventBytes = 960 << 10
)

// ErrClaimLost is returned when another process has claimed the object.
var ErrClaimLost = errors.New("another process has claimed it")

// UnreadableError is returned for an object with an event that this program cannot read. The object
// has the state before that event.
type UnreadableError struct {
	// Last is the last commit about the object, readable or not.
	Last uint64
	Err  error
}

func (u *UnreadableError) Error() string { return u.Err.Error() }

// Unwrap returns the reason, for example eventlog.ErrUnknownType.
func (u *UnreadableError) Unwrap() error { return u.Err }

// Log is the part of the event log that a Root uses.
type Log interface {
	// Append stores a commit if its aggregate is still at the expected sequence. Otherwise it
	// returns eventlog.ErrConflict.
	Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error)
	// Read returns the commits of an aggregate after a sequence, in order.
	Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error)
}

// State is the result of applying the events of an object.
type State[E any] interface {
	// Apply applies an event. It never fails, because an event in the log has happened.
	Apply(event E, at time.Time)
	// ClaimedBy returns the process that last claimed the object, or "".
	ClaimedBy() string
}

// Root is one object of the log. Set its exported fields, except State and Seq, before use. It is
// not safe for concurrent use.
type Root[E any, S State[E]] struct {
	Log     Log
	Catalog *eventlog.Catalog[E]
	Name    eventlog.Aggregate
	// Actor is the author of the appended events.
	Actor string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// RoundTrips reports whether the log returns an event exactly as it was appended, so that
	// Append can apply it without decoding. If nil, each event is decoded.
	RoundTrips func(E) bool
	// Links returns the links of an event by the state before it. If nil, no event names its cause.
	Links func(S, E) Links

	// OnStored is called with each stored event, before the event is applied if another process
	// appended it. May be nil.
	OnStored func(eventlog.Event)

	// State includes the events that were read and recorded. Seq is the last stored commit in it.
	State S
	Seq   uint64

	pending   []recorded // recorded but not stored
	causes    Causes
	linkedSeq uint64 // last commit that the causes include
}

type recorded struct {
	eventlog.Event
	links Links
}

// Read reads and applies the commits that other processes have appended. At an event that this
// program cannot read, it stops and returns an *UnreadableError. Do not call Read while recorded
// events are not stored; see Reload.
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

// fold applies a commit. It adds the events to the causes only if the causes include all earlier
// events; otherwise loadCauses does.
func (r *Root[E, S]) fold(record eventlog.Record) error {
	links := r.Links != nil && r.linkedSeq == r.Seq
	err := r.Catalog.Each(record, func(e E, stored eventlog.Event) {
		if links {
			r.addCause(e, stored)
		}
		if r.OnStored != nil {
			r.OnStored(stored)
		}
		r.State.Apply(e, stored.Time)
	})
	if err == nil && links {
		r.linkedSeq = record.Seq
	}
	return err
}

// Reload discards recorded events that are not stored, and reads the object from its beginning into
// an empty state.
func (r *Root[E, S]) Reload(ctx context.Context, empty S) error {
	r.Seq, r.State, r.pending, r.causes, r.linkedSeq = 0, empty, nil, Causes{}, 0
	return r.Read(ctx)
}

// Refresh calls Read and then CheckClaim.
func (r *Root[E, S]) Refresh(ctx context.Context, claimant string) error {
	if err := r.Read(ctx); err != nil {
		return err
	}
	return r.CheckClaim(claimant)
}

// CheckClaim returns ErrClaimLost, with the name of the other process, unless the claimant was the
// last to claim the object.
func (r *Root[E, S]) CheckClaim(claimant string) error {
	if now := r.State.ClaimedBy(); now != claimant {
		return fmt.Errorf("%s: %w: %s", r.Name.ID, ErrClaimLost, now)
	}
	return nil
}

// Time returns the current time as the log would return it.
func (r *Root[E, S]) Time() time.Time { return Time(r.Now) }

// Time returns the time of a clock as the log would return it. A nil clock is time.Now.
func Time(clock func() time.Time) time.Time {
	if clock == nil {
		clock = time.Now
	}
	return clock().UTC().Round(0)
}

// Append stores events with the current time and applies them. If one of the events is too large
// for the log, it stores none. Otherwise each retry would store the events before the large one
// again.
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

// Create appends the first events of an object. It does nothing if the log already contains the object.
func (r *Root[E, S]) Create(ctx context.Context, events ...E) error {
	if err := r.Append(ctx, events...); !errors.Is(err, eventlog.ErrConflict) {
		return err
	}
	return nil
}

// Decide appends the events that decide returns for the state. If another process has appended
// first, it calls read and then decide again. The caller passes the method Read, or a function that
// calls Refresh if this process must still hold the claim.
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

// Record applies events without storing them, so that further decisions can build on them. Until
// Store has stored them, they must not be reported or have effects.
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

// Store appends the recorded events. After an error the state is ahead of the log, and the caller must Reload.
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

// encode returns the events twice: as the log would return them (read), and as it stores them
// (encoded).
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
		if r.RoundTrips == nil || !r.RoundTrips(e) {
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

// commit stores at least one of the events, and as many as fit into one commit. It returns their number.
func (r *Root[E, S]) commit(ctx context.Context, events []recorded) (int, error) {
	if err := r.loadCauses(ctx); err != nil {
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
	stored := r.causes.setCauses(&commit, links)
	receipt, err := r.Log.Append(ctx, commit)
	if err != nil {
		return 0, err
	}
	stored()
	for i := range commit.Events {
		if r.OnStored != nil {
			r.OnStored(commit.Events[i])
		}
	}
	r.Seq, r.linkedSeq = receipt.Seq, receipt.Seq
	return len(links), nil
}
