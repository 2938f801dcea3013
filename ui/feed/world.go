package feed

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"scute.dev/cmd/ctl/kinds"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/move"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/cmd/ctl/run"
	"scute.dev/eventlog"
)

// ErrNotFound reports that the log contains no object of that name up to the requested moment.
var ErrNotFound = errors.New("not found in the log")

// Snapshot is the state of all aggregates of a log at a commit. It is not safe for concurrent use.
type Snapshot struct {
	// Seq and Stored are of the last applied commit.
	Seq    uint64
	Stored time.Time

	entries map[eventlog.Aggregate]*entry
}

// entry is one aggregate. If it cannot be read, err is set and other aggregates are not affected.
type entry struct {
	fold        kinds.Fold
	first, last uint64
	err         error
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
		e = &entry{fold: kinds.New(r.Aggregate), first: r.Seq}
		w.entries[r.Aggregate] = e
	}
	e.last = r.Seq
	if e.fold != nil && e.err == nil {
		e.err = e.fold.Apply(r)
	}
}

// Last returns the sequence of an aggregate's last commit, 0 if the log does not contain the aggregate.
func (w *Snapshot) Last(a eventlog.Aggregate) uint64 {
	if e := w.entries[a]; e != nil {
		return e.last
	}
	return 0
}

// Run returns a run by its ID. The Snapshot owns it and changes it.
func (w *Snapshot) Run(id string) (*run.Run, error) {
	f, err := find[*run.Fold](w, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id})
	if err != nil {
		return nil, err
	}
	return f.Refresh(), nil
}

// Move returns a move by its ID.
func (w *Snapshot) Move(id string) (*move.Fold, error) {
	return find[*move.Fold](w, eventlog.Aggregate{Kind: eventlog.KindMove, ID: id})
}

// Owner returns an owner of machines by its ID.
func (w *Snapshot) Owner(id string) (*remediation.Fold, error) {
	return find[*remediation.Fold](w, eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: id})
}

// find returns an aggregate, or an error if it does not exist or this program cannot read it.
func find[F kinds.Fold](w *Snapshot, a eventlog.Aggregate) (F, error) {
	e := w.entries[a]
	if e == nil {
		return *new(F), fmt.Errorf("%w: %s, up to commit %d", ErrNotFound, a, w.Seq)
	}
	f, ok := e.fold.(F)
	if !ok {
		return f, fmt.Errorf("%w: %s, up to commit %d", ErrNotFound, a, w.Seq)
	}
	if e.err != nil {
		return f, fmt.Errorf("%s cannot be read: %w", a, e.err)
	}
	return f, nil
}

// Pause returns a Pause by its ID.
func (w *Snapshot) Pause(id string) (*pause.Fold, error) {
	f, err := find[*pause.Fold](w, eventlog.Aggregate{Kind: eventlog.KindPause, ID: id})
	if err == nil && f.Pause() == nil {
		err = fmt.Errorf("%w: pause/%s was not requested up to commit %d", ErrNotFound, id, w.Seq)
	}
	return f, err
}

// Document is an object in a list.
type Document struct {
	kit.Document
	Aggregate eventlog.Aggregate
	// Last is the last commit of the aggregate.
	Last uint64
}

// Documents returns the readable objects of all kinds, last changed first.
func (w *Snapshot) Documents(k *kit.Kit) (list []Document) {
	for a, e := range w.entries {
		if e.fold == nil || e.err != nil {
			continue
		}
		for _, d := range e.fold.Documents(k) {
			list = append(list, Document{Document: d, Aggregate: a, Last: e.last})
		}
	}
	slices.SortStableFunc(list, func(a, b Document) int { return cmp.Or(cmp.Compare(b.Last, a.Last), cmp.Compare(a.Name, b.Name)) })
	return list
}

// Object returns the documents of an aggregate, of any kind.
func (w *Snapshot) Object(k *kit.Kit, a eventlog.Aggregate) ([]kit.Document, error) {
	f, err := find[kinds.Fold](w, a)
	if err != nil {
		return nil, err
	}
	return f.Documents(k), nil
}

// Pauses returns the readable Pauses, last changed first.
func (w *Snapshot) Pauses() iter.Seq2[string, *pause.Fold] {
	return func(yield func(string, *pause.Fold) bool) {
		for id, f := range all[*pause.Fold](w, eventlog.KindPause) {
			if f.Pause() != nil && !yield(id, f) {
				return
			}
		}
	}
}

// Owners returns the readable owners of machines, last changed first.
func (w *Snapshot) Owners() iter.Seq2[string, *remediation.Fold] {
	return all[*remediation.Fold](w, eventlog.KindRemediation)
}

func all[F kinds.Fold](w *Snapshot, kind eventlog.Kind) iter.Seq2[string, F] {
	return func(yield func(string, F) bool) {
		for _, a := range w.newest(kind) {
			f, ok := w.entries[a].fold.(F)
			if ok && w.entries[a].err == nil && !yield(a.ID, f) {
				return
			}
		}
	}
}

func (w *Snapshot) newest(kind eventlog.Kind) []eventlog.Aggregate {
	var of []eventlog.Aggregate
	for a := range w.entries {
		if a.Kind == kind {
			of = append(of, a)
		}
	}
	slices.SortFunc(of, func(a, b eventlog.Aggregate) int { return cmp.Compare(w.entries[b].last, w.entries[a].last) })
	return of
}

// Unreadable returns the aggregates that this program cannot read, with the error.
func (w *Snapshot) Unreadable() iter.Seq2[eventlog.Aggregate, error] {
	return func(yield func(eventlog.Aggregate, error) bool) {
		for _, a := range slices.SortedFunc(maps.Keys(w.entries), func(a, b eventlog.Aggregate) int { return cmp.Compare(a.String(), b.String()) }) {
			if e := w.entries[a]; e.err != nil && !yield(a, e.err) {
				return
			}
		}
	}
}
