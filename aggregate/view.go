package aggregate

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"scute.dev/eventlog"
)

// View holds the objects of one kind. A projector applies the commits of the log; reading is safe for concurrent use. Forget deletes objects that
// have ended.
type View[E any, S State[E]] struct {
	// Changed is called after an object has changed, from the projector's goroutine; it must not block. May be nil.
	Changed func(id string)
	// Log is the log that Recall reads. It is set before use and not changed.
	Log Log

	kind    eventlog.Kind
	catalog *eventlog.Catalog[E]
	empty   func() S
	ended   func(S) bool

	mu      sync.RWMutex
	entries map[string]*Entry[S]
}

// Entry is one object of a View.
type Entry[S any] struct {
	State S
	// Seq is the last commit about the object.
	Seq uint64
	// Bytes is the size of the subjects and payloads of all commits about the object.
	Bytes int
	// Err is set if this program cannot read an event of the object. The state is that before the event.
	Err error
}

// Folded is a State with a callback that is called after each commit.
type Folded interface{ Folded() }

// NewView returns an empty view of the objects of a kind. empty returns the state of an object without events. ended reports whether the object has
// ended.
func NewView[E any, S State[E]](kind eventlog.Kind, catalog *eventlog.Catalog[E], empty func() S, ended func(S) bool) *View[E, S] {
	return &View[E, S]{kind: kind, catalog: catalog, empty: empty, ended: ended, entries: make(map[string]*Entry[S])}
}

// Apply applies a commit. It ignores commits of other kinds, and commits about an object that Forget has deleted, because they do not change how the
// object ended. After an error it applies no further commit to the object.
func (v *View[E, S]) Apply(r eventlog.Record) error {
	if r.Aggregate.Kind != v.kind {
		return nil
	}
	err := v.apply(r)
	if v.Changed != nil {
		v.Changed(r.Aggregate.ID)
	}
	return err
}

func (v *View[E, S]) apply(r eventlog.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.entries[r.Aggregate.ID]
	if e == nil && !r.IsFirst() {
		return nil
	}
	if e == nil {
		e = &Entry[S]{State: v.empty()}
		v.entries[r.Aggregate.ID] = e
	}
	e.Seq = r.Seq
	e.Bytes += len(r.Subject()) + len(r.Data())
	if e.Err != nil {
		return e.Err
	}
	if e.Err = v.catalog.Fold(r, e.State.Apply); e.Err != nil {
		return e.Err
	}
	if f, ok := any(e.State).(Folded); ok {
		f.Folded()
	}
	return nil
}

// Forget deletes objects that have ended, in the order of their last commits, until those that remain have at most so many bytes (Entry.Bytes). It keeps
// objects with an event that this program cannot read.
func (v *View[E, S]) Forget(most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var over []string
	bytes := 0
	for id, e := range v.entries {
		if e.Err == nil && v.ended(e.State) {
			over = append(over, id)
			bytes += e.Bytes
		}
	}
	if bytes <= most {
		return
	}
	slices.SortFunc(over, func(a, b string) int { return cmp.Compare(v.entries[a].Seq, v.entries[b].Seq) })
	for _, id := range over {
		if bytes <= most {
			break
		}
		bytes -= v.entries[id].Bytes
		delete(v.entries, id)
	}
	v.entries = maps.Collect(maps.All(v.entries)) // a map that loses entries keeps its size
}

// Recall reads from the log an object that Forget may have deleted. It returns nil if the object has not ended, does not exist, or has an event that
// this program cannot read.
func (v *View[E, S]) Recall(ctx context.Context, id string) (*Entry[S], error) {
	records, err := v.Log.Read(ctx, eventlog.Aggregate{Kind: v.kind, ID: id}, 0)
	if err != nil {
		return nil, err
	}
	again := NewView(v.kind, v.catalog, v.empty, v.ended)
	for _, r := range records {
		_ = again.Apply(r) // the entry has its error
	}
	if e := again.entries[id]; e != nil && e.Err == nil && v.ended(e.State) {
		return e, nil
	}
	return nil, nil
}

// Read calls fn with an object, or with nil if the view does not have it. fn must not change or retain the object.
func (v *View[E, S]) Read(id string, fn func(e *Entry[S])) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	fn(v.entries[id])
}

// ReadState calls fn with the state of an object, or with the zero value if the view does not have it. fn must not change or retain the state.
func (v *View[E, S]) ReadState(id string, fn func(S)) {
	v.Read(id, func(e *Entry[S]) {
		var s S
		if e != nil {
			s = e.State
		}
		fn(s)
	})
}

// All returns the objects, in no order, while no commit is applied. The caller must not change or retain them.
func (v *View[E, S]) All() iter.Seq2[string, *Entry[S]] {
	return func(yield func(string, *Entry[S]) bool) {
		v.mu.RLock()
		defer v.mu.RUnlock()
		for id, e := range v.entries {
			if !yield(id, e) {
				return
			}
		}
	}
}

// IDs returns the IDs of all objects, sorted.
func (v *View[E, S]) IDs() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Sorted(maps.Keys(v.entries))
}

// Where returns the IDs of the objects for which fn returns true, sorted. No commit is applied meanwhile. fn must not change or retain the object.
func (v *View[E, S]) Where(fn func(e *Entry[S]) bool) (ids []string) {
	for id, e := range v.All() {
		if fn(e) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
