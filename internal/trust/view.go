package trust

import (
	"fmt"
	"slices"
	"sync"

	"scute.dev/eventlog"
	"scute.dev/internal/fields"
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

// saved is the view in a snapshot.
type saved struct {
	state State
	seq   uint64
}

// Snapshot implements projector.Snapshotter.
func (v *View) Snapshot(put func(part string, data []byte) error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.seq == 0 {
		return nil
	}
	data, err := fields.Append(nil, &saved{v.state, v.seq})
	if err != nil {
		return fmt.Errorf("saving %s: %w", Aggregate(), err)
	}
	return put(Aggregate().String(), data)
}

// Restore implements projector.Snapshotter.
func (v *View) Restore(part string, data []byte) error {
	var s saved
	if err := fields.Read(data, &s); err != nil {
		return fmt.Errorf("restoring %s: %w", part, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state, v.seq = s.state, s.seq
	return nil
}
