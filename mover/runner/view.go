package runner

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// Moves is the view of the moves in the log: of all of them, until it is told to forget. It is filled by a projector and read by many.
type Moves struct {
	*aggregate.View[mover.Event, *mover.State]
	// Home is where this process drives from. It is set before use and not changed.
	Home mover.Home
}

// NewMoves makes an empty view.
func NewMoves(changed func(id string)) *Moves {
	empty := func() *mover.State { return new(mover.State) }
	v := &Moves{View: aggregate.NewView(eventlog.KindMove, mover.NewCatalog(), empty, (*mover.State).Finished)}
	v.Changed = changed
	return v
}

// Status is the view of one move.
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
	status.MoveID, status.Clusters = id, mover.SelectedByAll(e.State)
	if e.State.MarkLog == e.State.Home.Log { // else the sequence would be taken for one of the log that was lost
		status.LogSequence = int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	}
	if e.Err != nil {
		mover.Strand(&status, e.Err)
	}
	if message, next := m.Home.Foreign(e.State); message != "" {
		status.Stranded, status.Message, status.Next = true, message, next
	}
	return status
}

// Recall reads from the log how a move ended that the view may have forgotten. ended is false for one that the log does not know, or
// that is not over.
func (m *Moves) Recall(ctx context.Context, id string) (status v1alpha1.MoveStatus, ended bool, err error) {
	e, err := m.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return m.status(id, e), true, nil
}

// Spec is what was asked for with one move.
func (m *Moves) Spec(id string) (spec mover.Spec, known bool) {
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil {
			spec, known = e.State.Spec, true
		}
	})
	return spec, known
}

// Over says whether a move has ended, and what was asked for with it.
func (m *Moves) Over(id string) (spec mover.Spec, over bool) {
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil && e.State.Finished() {
			spec, over = e.State.Spec, true
		}
	})
	return spec, over
}

// Open are the ids of the moves of a name that are driven from here and not over, in any namespace and of any name where both are empty.
func (m *Moves) Open(namespace, name string) []string {
	return m.Where(func(e *aggregate.Entry[*mover.State]) bool {
		s := e.State
		foreign, _ := m.Home.Foreign(s)
		return !s.Finished() && foreign == "" && (namespace == "" && name == "" || s.Spec.Namespace == namespace && s.Spec.Name == name)
	})
}

// namespace of a move, "" for one that the log does not know.
func (m *Moves) namespace(id string) string {
	spec, _ := m.Spec(id)
	return spec.Namespace
}

// Due says that Drive has something to do for a move, at once.
func (m *Moves) Due(id string) (wait time.Duration, due bool) {
	m.Read(id, func(e *aggregate.Entry[*mover.State]) {
		if e != nil && e.Err == nil && mover.Due(e.State) {
			foreign, _ := m.Home.Foreign(e.State)
			due = foreign == ""
		}
	})
	return 0, due
}
