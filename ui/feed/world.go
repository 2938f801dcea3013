package feed

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"scute.dev/eventlog"
)

// ErrNotFound means that the log contains no such object up to the requested commit.
var ErrNotFound = errors.New("not found in the log")

// Snapshot is the state of all aggregates of a log at a commit. It is not safe for concurrent use.
type Snapshot struct {
	// Seq and Stored are the sequence of the last applied commit and the time when it was stored.
	Seq    uint64
	Stored time.Time

	entries map[eventlog.Aggregate]*entry
}

// entry is one aggregate. An error in it does not affect other aggregates.
type entry struct {
	fold Fold // nil if the kind has none
	last uint64
	err  error
}

// NewSnapshot returns the state of an empty log.
func NewSnapshot() *Snapshot {
	return &Snapshot{entries: make(map[eventlog.Aggregate]*entry)}
}

// Apply applies the next commit.
func (w *Snapshot) Apply(r eventlog.Record) {
	w.Seq, w.Stored = r.Seq, r.Stored
	e := w.entries[r.Aggregate]
	if e == nil {
		e = &entry{fold: NewFold(r.Aggregate)}
		w.entries[r.Aggregate] = e
	}
	e.last = r.Seq
	if e.fold != nil && e.err == nil {
		e.err = e.fold.Apply(r)
	}
}

// Find returns an aggregate of w, or an error if it does not exist or cannot be read.
func Find[F Fold](w *Snapshot, kind eventlog.Kind, id string) (f F, err error) {
	a := eventlog.Aggregate{Kind: kind, ID: id}
	e, ok := w.entries[a]
	if ok {
		f, ok = e.fold.(F)
	}
	switch {
	case !ok:
		return f, fmt.Errorf("%w: %s, up to commit %d", ErrNotFound, a, w.Seq)
	case e.err != nil:
		return f, fmt.Errorf("%s cannot be read: %w", a, e.err)
	default:
		return f, nil
	}
}

// All returns the aggregates whose fold has the type F and that can be read. The aggregate that
// changed last comes first.
func All[F Fold](w *Snapshot) iter.Seq2[eventlog.Aggregate, F] {
	return func(yield func(eventlog.Aggregate, F) bool) {
		var list []eventlog.Aggregate
		for a, e := range w.entries {
			if _, ok := e.fold.(F); ok && e.err == nil {
				list = append(list, a)
			}
		}
		slices.SortFunc(list, func(a, b eventlog.Aggregate) int { return cmp.Compare(w.entries[b].last, w.entries[a].last) })
		for _, a := range list {
			if f, ok := w.entries[a].fold.(F); ok && !yield(a, f) {
				return
			}
		}
	}
}

// Unreadable returns the aggregates that this program cannot read, each with its error.
func (w *Snapshot) Unreadable() iter.Seq2[eventlog.Aggregate, error] {
	return func(yield func(eventlog.Aggregate, error) bool) {
		for _, a := range slices.SortedFunc(maps.Keys(w.entries), func(a, b eventlog.Aggregate) int { return cmp.Compare(a.String(), b.String()) }) {
			if e := w.entries[a]; e.err != nil && !yield(a, e.err) {
				return
			}
		}
	}
}
