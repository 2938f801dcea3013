package trust

import (
	"slices"
	"sync"

	"scute.dev/eventlog"
)

// View is what the log says about itself, filled by a projector and read by many.
type View struct {
	catalog *eventlog.Catalog[Event]
	mu      sync.RWMutex
	state   State
	seq     uint64
}

// NewView makes an empty view.
func NewView() *View { return &View{catalog: NewCatalog()} }

// Apply folds a commit in; commits about anything else are passed over.
func (v *View) Apply(r eventlog.Record) error {
	if r.Aggregate != Aggregate() {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seq = r.Seq
	err := v.catalog.Fold(r, v.state.Apply)
	if err != nil {
		v.state.Unread = err.Error()
	}
	return err
}

// State is a copy of the state, and the sequence of the last commit in it.
func (v *View) State() (State, uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.state
	s.Accepted, s.Reconciled = slices.Clone(s.Accepted), slices.Clone(s.Reconciled)
	return s, v.seq
}
