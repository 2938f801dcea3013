package runner

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// Moves is the view of the moves in the log that Forget has not deleted. A projector applies commits; reading is safe for concurrent use.
type Moves struct {
	*aggregate.View[mover.Event, *mover.State]
	// Home is the management cluster and the log of this process. It is set before use and not changed.
	Home mover.Home
}

// NewMoves returns an empty view.
func NewMoves(changed func(id string)) *Moves {
	empty := func() *mover.State { return new(mover.State) }
	v := &Moves{View: aggregate.NewView(eventlog.KindMove, mover.NewCatalog(), empty, (*mover.State).Finished)}
	v.Changed = changed
	return v
}

// Status returns the status of a move.
func (m *Moves) Status(id string) (status v1alpha1.MoveStatus, known bool) {
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil {
			known, status = true, m.status(id, e)
		}
	})
	return status, known
}

func (m *Moves) status(id string, e *aggregate.Entry[*mover.State]) v1alpha1.MoveStatus {
	status := mover.Status(e.State)
	status.MoveID, status.Clusters = id, mover.SelectedClusters(e.State)
	if e.State.MarkLog == e.State.Home.Log { // otherwise clients would assume a sequence of the lost log
		status.LogSequence = int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	}
	if e.Err != nil {
		mover.SetUnreadable(&status, e.Err)
	}
	if message, next := m.Home.Mismatch(e.State); message != "" {
		status.Stranded, status.Message, status.Next = true, message, next
	}
	return status
}

// Recall reads from the log how a move ended that Forget may have deleted. ended is false if the log does not contain the move, or if it has not
// ended.
func (m *Moves) Recall(ctx context.Context, id string) (status v1alpha1.MoveStatus, ended bool, err error) {
	e, err := m.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return m.status(id, e), true, nil
}

// Spec returns the specification of a move.
func (m *Moves) Spec(id string) (spec mover.Spec, known bool) {
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil {
			spec, known = e.State.Spec, true
		}
	})
	return spec, known
}

// Ended reports whether a move has ended, and returns its specification.
func (m *Moves) Ended(id string) (spec mover.Spec, over bool) {
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil && e.State.Finished() {
			spec, over = e.State.Spec, true
		}
	})
	return spec, over
}

// Open returns the IDs of the open moves with a name that this process may drive; of all of them if namespace and name are empty.
func (m *Moves) Open(namespace, name string) []string {
	return m.Where(func(e *aggregate.Entry[*mover.State]) bool {
		s := e.State
		foreign, _ := m.Home.Mismatch(s)
		return !s.Finished() && foreign == "" && (namespace == "" && name == "" || s.Spec.Namespace == namespace && s.Spec.Name == name)
	})
}

// namespace returns the namespace of a move, or "" if the log does not contain it.
func (m *Moves) namespace(id string) string {
	spec, _ := m.Spec(id)
	return spec.Namespace
}

// Due reports whether Drive has work for a move. The wait is always zero.
func (m *Moves) Due(id string) (wait time.Duration, due bool) {
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil && e.Err == nil && mover.Due(e.State) {
			foreign, _ := m.Home.Mismatch(e.State)
			due = foreign == ""
		}
	})
	return 0, due
}
