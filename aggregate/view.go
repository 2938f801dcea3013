package aggregate

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"scute.dev/eventlog"
)

// Applier is a view to which a Projector applies the log. Its state depends only on the commits and their order.
type Applier interface {
	// Apply applies a commit. It ignores commits of other kinds. If the view cannot follow the
	// commit's aggregate any further, it returns an error, for example eventlog.ErrUnknownType, and
	// changes nothing. Only one goroutine calls it.
	Apply(r eventlog.Record) error
}

// Projector replays the log into a view, follows the log, and reports its position.
type Projector struct {
	log      *eventlog.Log
	view     Applier
	name     string
	logger   *slog.Logger
	caughtUp chan struct{}
	ended    chan struct{}
	endErr   error // set before ended is closed

	mu       sync.Mutex
	position uint64
	advanced chan struct{} // closed when the view advances; nil if no caller waits
}

// NewProjector returns a projector for an empty view. name is the name of the view in messages.
func NewProjector(log *eventlog.Log, name string, view Applier, logger *slog.Logger) *Projector {
	return &Projector{
		log: log, view: view, name: name, logger: logger.With("view", name),
		caughtUp: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Run replays the log and follows it until ctx ends. It always returns an error: the error of ctx,
// or an error after which the view is invalid (eventlog.ErrGap, eventlog.ErrMissing). Call it once.
func (p *Projector) Run(ctx context.Context) error {
	p.endErr = fmt.Errorf("projecting the log into view %q: %w", p.name, p.run(ctx))
	close(p.ended)
	return p.endErr
}

func (p *Projector) run(ctx context.Context) error {
	head, err := p.log.Head(ctx)
	if err != nil {
		return err
	}
	if head == 0 {
		close(p.caughtUp)
	}
	aside := make(map[eventlog.Aggregate]bool) // aggregates with a commit that the view cannot apply
	return p.log.Follow(ctx, 0, func(r eventlog.Record) error {
		if !aside[r.Aggregate] {
			if err := p.view.Apply(r); err != nil {
				aside[r.Aggregate] = true
				p.logger.Error("aggregate set aside: the view cannot follow it",
					"aggregate", r.Aggregate.String(), "sequence", r.Seq, "error", err)
			}
		}
		p.advance(r.Seq)
		if r.Seq == head {
			close(p.caughtUp)
		}
		return nil
	})
}

func (p *Projector) advance(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.position = seq
	if p.advanced != nil {
		close(p.advanced)
		p.advanced = nil
	}
}

// Position returns the sequence of the last commit that was applied to the view.
func (p *Projector) Position() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position
}

// CaughtUp returns a channel that is closed when the view has applied what the log contained when Run began.
func (p *Projector) CaughtUp() <-chan struct{} { return p.caughtUp }

// WaitFor waits until the view has applied the commit at seq, so that a caller can read its own
// append. It fails if ctx or Run ends first.
func (p *Projector) WaitFor(ctx context.Context, seq uint64) error {
	for {
		p.mu.Lock()
		if p.position >= seq {
			p.mu.Unlock()
			return nil
		}
		if p.advanced == nil {
			p.advanced = make(chan struct{})
		}
		advanced := p.advanced
		p.mu.Unlock()
		select {
		case <-advanced:
		case <-ctx.Done():
			return fmt.Errorf("waiting for view %q to reach %d, it is at %d: %w", p.name, seq, p.Position(), ctx.Err())
		case <-p.ended:
			return fmt.Errorf("waiting for view %q to reach %d: %w", p.name, seq, p.endErr)
		}
	}
}

// Kind describes the objects of a kind to a View. E are their events, S is their state, and T the
// status of their resource.
type Kind[E any, S State[E], T any] struct {
	Name    eventlog.Kind
	Catalog *eventlog.Catalog[E]
	New     func() S
	// Ended reports whether an object has ended, so that the View may forget it.
	Ended func(S) bool
	// Open reports whether an object is unfinished, so that it must end when its resource is
	// deleted.
	Open func(id string, e *Entry[S]) bool
	// Due reports whether an object has to be driven, and after which wait. It is false if only a
	// change can make the object due.
	Due func(S) (wait time.Duration, due bool)
	// Status returns the status of an object. known is false until the log contains its whole request.
	Status func(id string, e *Entry[S]) (status T, known bool)
}

// View holds the objects of one kind. A projector applies the commits of the log; reading is safe
// for concurrent use. Forget deletes objects that have ended.
type View[E any, S State[E], T any] struct {
	// Changed is called after a commit about an object, from the projector's goroutine; it must not
	// block. May be nil.
	Changed func(id string, seq uint64)
	// Log is the log that Recall reads. Set it before use.
	Log Log

	kind Kind[E, S, T]

	mu      sync.RWMutex
	entries map[string]*Entry[S]
}

// Entry is one object of a View.
type Entry[S any] struct {
	State S
	Seq   uint64
	// Bytes is the size of the subjects and payloads of all commits about the object.
	Bytes int
	// Err is set if this program cannot read an event of the object. State is then the state before that event.
	Err error
}

// NewView returns an empty view.
func NewView[E any, S State[E], T any](kind Kind[E, S, T]) *View[E, S, T] {
	return &View[E, S, T]{kind: kind, entries: make(map[string]*Entry[S])}
}

// Apply applies a commit. It ignores commits of other kinds, and commits about an object that
// Forget has deleted, because they do not change how the object ended. After an error it applies no
// further commit to the object.
func (v *View[E, S, T]) Apply(r eventlog.Record) error {
	if r.Aggregate.Kind != v.kind.Name {
		return nil
	}
	err := v.apply(r)
	if v.Changed != nil {
		v.Changed(r.Aggregate.ID, r.Seq)
	}
	return err
}

func (v *View[E, S, T]) apply(r eventlog.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.entries[r.Aggregate.ID]
	if e == nil && !r.IsFirst() {
		return nil
	}
	if e == nil {
		e = &Entry[S]{State: v.kind.New()}
		v.entries[r.Aggregate.ID] = e
	}
	e.Seq = r.Seq
	e.Bytes += len(r.Subject()) + len(r.Data())
	if e.Err != nil {
		return e.Err
	}
	if e.Err = v.kind.Catalog.Fold(r, e.State.Apply); e.Err != nil {
		return e.Err
	}
	if f, ok := any(e.State).(interface{ Folded() }); ok { // called after each commit
		f.Folded()
	}
	return nil
}

// Forget deletes ended objects, oldest last commit first, until the remaining ended objects have at
// most the given number of bytes (Entry.Bytes). It keeps objects with an event that this program
// cannot read.
func (v *View[E, S, T]) Forget(most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var over []string
	bytes := 0
	for id, e := range v.entries {
		if e.Err == nil && v.kind.Ended(e.State) {
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
	v.entries = maps.Collect(maps.All(v.entries)) // a map does not shrink when it loses entries
}

// Recall returns the status of an ended object that Forget may have deleted. It reads the object
// from the log. ended is false if the object has not ended, does not exist, or has an event that
// this program cannot read.
func (v *View[E, S, T]) Recall(ctx context.Context, id string) (status T, ended bool, err error) {
	records, err := v.Log.Read(ctx, eventlog.Aggregate{Kind: v.kind.Name, ID: id}, 0)
	if err != nil {
		return status, false, err
	}
	again := NewView(v.kind)
	for _, r := range records {
		_ = again.Apply(r) // the entry has the error
	}
	if e := again.entries[id]; e != nil && e.Err == nil && v.kind.Ended(e.State) {
		status, ended = v.kind.Status(id, e)
	}
	return status, ended, nil
}

// Status returns the status of an object's resource. known is false if the view does not contain
// the object or its whole request.
func (v *View[E, S, T]) Status(id string) (status T, known bool) {
	v.Read(id, func(e *Entry[S]) {
		if e != nil {
			status, known = v.kind.Status(id, e)
		}
	})
	return status, known
}

// Due reports whether an object has to be driven, and after which wait. It is false if only a
// change can make the object due.
func (v *View[E, S, T]) Due(id string) (wait time.Duration, due bool) {
	v.Read(id, func(e *Entry[S]) {
		if e != nil && e.Err == nil {
			wait, due = v.kind.Due(e.State)
		}
	})
	return wait, due
}

// Open returns the sorted IDs of the open objects of a resource, or of all resources if namespace
// and name are empty. An object's ID begins with the namespace and name of its resource.
func (v *View[E, S, T]) Open(namespace, name string) (ids []string) {
	for id, e := range v.All() {
		asked := namespace == "" && name == "" || path.Dir(id) == namespace+"/"+name
		if asked && v.kind.Open(id, e) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Read calls fn with an object, or nil if the view does not contain it. fn must not change or retain the object.
func (v *View[E, S, T]) Read(id string, fn func(e *Entry[S])) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	fn(v.entries[id])
}

// Err returns why an event of an object cannot be read.
func (v *View[E, S, T]) Err(id string) (err error) {
	v.Read(id, func(e *Entry[S]) {
		if e != nil {
			err = e.Err
		}
	})
	return err
}

// ReadState calls fn with the state of an object, or the zero value if the view does not contain
// the object. fn must not change or retain the state.
func (v *View[E, S, T]) ReadState(id string, fn func(S)) {
	v.Read(id, func(e *Entry[S]) {
		var s S
		if e != nil {
			s = e.State
		}
		fn(s)
	})
}

// All returns an iterator over the objects, in no order. No commit is applied during the iteration.
// The caller must not change or retain the objects.
func (v *View[E, S, T]) All() iter.Seq2[string, *Entry[S]] {
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

// IDs returns the sorted IDs of all objects.
func (v *View[E, S, T]) IDs() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Sorted(maps.Keys(v.entries))
}
