package trust

import (
	"slices"
	"sync"

	"scute.dev/eventlog"
)

// View is the state of the log's own aggregate. A projector updates it, and it is safe for concurrent reads.
type View struct {
	catalog *eventlog.Catalog[Event]
	mu      sync.RWMutex
	state   State
	seq     uint64
}

// NewView returns an empty view.
func NewView() *View { return &View{catalog: NewCatalog()} }

// Apply applies a commit. It ignores commits about other aggregates.
func (v *View) Apply(r eventlog.Record) error {
	if r.Aggregate != Aggregate() {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seq = r.Seq
	err := v.catalog.Fold(r, v.state.Apply)
	if err != nil {
		v.state.UnreadableReason = err.Error()
	}
	return err
}

// State returns a copy of the state, and the sequence of the last commit in it.
func (v *View) State() (State, uint64) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	s := v.state
	s.Accepted, s.Reconciled = slices.Clone(s.Accepted), slices.Clone(s.Reconciled)
	return s, v.seq
}
