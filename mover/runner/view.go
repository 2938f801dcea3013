package runner

import (
	"slices"
	"sync"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// Moves is the view of all moves in the log. It is filled by a projector and read by many.
type Moves struct {
	// Changed is called after a move has changed, from the projector's goroutine; it must not block. May be nil.
	Changed func(id string)
	// Home is where this process drives from. It is set before use and not changed.
	Home mover.Home

	catalog *eventlog.Catalog[mover.Event]
	mu      sync.RWMutex
	moves   map[string]*entry
}

type entry struct {
	state mover.State
	seq   uint64
	err   error // the log holds something about the move that this program cannot read
}

// NewMoves makes an empty view.
func NewMoves(changed func(id string)) *Moves {
	return &Moves{Changed: changed, catalog: mover.NewCatalog(), moves: make(map[string]*entry)}
}

// Apply folds a commit in; commits about anything but moves are passed over.
func (m *Moves) Apply(r eventlog.Record) error {
	if r.Aggregate.Kind != eventlog.KindMove {
		return nil
	}
	err := m.apply(r)
	if m.Changed != nil {
		m.Changed(r.Aggregate.ID)
	}
	return err
}

func (m *Moves) apply(r eventlog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.moves[r.Aggregate.ID]
	if e == nil {
		e = &entry{}
		m.moves[r.Aggregate.ID] = e
	}
	if err := Fold(&e.state, m.catalog, r); err != nil {
		e.err = err
		return err
	}
	e.seq = r.Seq
	return nil
}

// Status is the view of one move.
func (m *Moves) Status(id string) (v1alpha1.MoveStatus, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e := m.moves[id]
	if e == nil {
		return v1alpha1.MoveStatus{}, false
	}
	status := mover.Status(&e.state)
	status.MoveID = id
	if e.state.MarkLog == e.state.Home.Log { // else the sequence would be taken for one of the log that was lost
		status.LogSequence = int64(e.seq) //nolint:gosec // a sequence stays far below 2^63
	}
	if e.err != nil {
		mover.Strand(&status, e.err)
	}
	if message, next := m.Home.Foreign(&e.state); message != "" {
		status.Stranded, status.Message, status.Next = true, message, next
	}
	return status, true
}

// Spec is what was asked for with one move.
func (m *Moves) Spec(id string) (mover.Spec, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e := m.moves[id]
	if e == nil {
		return mover.Spec{}, false
	}
	return e.state.Spec, true
}

// Over says whether a move has ended, and what was asked for with it.
func (m *Moves) Over(id string) (mover.Spec, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e := m.moves[id]
	if e == nil || !e.state.Finished() {
		return mover.Spec{}, false
	}
	return e.state.Spec, true
}

// namespace of a move, "" for one that the log does not know.
func (m *Moves) namespace(id string) string {
	spec, _ := m.Spec(id)
	return spec.Namespace
}

// Due lists the moves that Drive has something to do for.
func (m *Moves) Due() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var ids []string
	for id, e := range m.moves {
		if foreign, _ := m.Home.Foreign(&e.state); e.err == nil && foreign == "" && mover.Due(&e.state) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// IDs lists all moves.
func (m *Moves) IDs() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	ids := make([]string, 0, len(m.moves))
	for id := range m.moves {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
