package runner

import (
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// Moves is the view of the moves in the log.
type Moves struct {
	*aggregate.View[mover.Event, *mover.State, v1alpha1.MoveStatus]
	// Home is the management cluster and the log of this process. Moves with another Home are not open and not due. It is set before use and not
	// changed.
	Home mover.Home
}

// NewMoves returns an empty view.
func NewMoves() *Moves {
	m := &Moves{}
	m.View = aggregate.NewView(aggregate.Kind[mover.Event, *mover.State, v1alpha1.MoveStatus]{
		Name: eventlog.KindMove, Catalog: mover.NewCatalog(), New: func() *mover.State { return new(mover.State) }, Ended: (*mover.State).Finished,
		Open: func(_ string, e *aggregate.Entry[*mover.State]) bool {
			return !e.State.Finished() && !isForeign(m.Home, e.State)
		},
		Due:    func(s *mover.State) (time.Duration, bool) { return 0, mover.Due(s) && !isForeign(m.Home, s) },
		Status: m.status,
	})
	return m
}

// isForeign reports whether a move began in another management cluster or log.
func isForeign(home mover.Home, s *mover.State) bool {
	message, _ := home.Mismatch(s)
	return message != ""
}

func (m *Moves) status(id string, e *aggregate.Entry[*mover.State]) (status v1alpha1.MoveStatus, known bool) {
	status = mover.Status(e.State)
	status.MoveID, status.Clusters = id, mover.SelectedClusters(e.State)
	if e.State.MarkLog == e.State.Home.Log { // otherwise clients would assume a sequence of the lost log
		status.LogSequence = int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	}
	if e.Err != nil {
		status.Message = "stranded: " + e.Err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	if message, next := m.Home.Mismatch(e.State); message != "" {
		status.Stranded, status.Message, status.Next = true, message, next
	}
	return status, true
}
