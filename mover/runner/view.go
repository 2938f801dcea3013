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
	// Home identifies the management cluster and the log of this process. Moves with another Home
	// are neither open nor due. Set it before use.
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
		Due: func(s *mover.State) (time.Duration, bool) { return 0, mover.Due(s) && !isForeign(m.Home, s) },
		Status: func(id string, e *aggregate.Entry[*mover.State]) (v1alpha1.MoveStatus, bool) {
			return m.Home.Status(id, e.Seq, e.Err, e.State), true
		},
	})
	return m
}

func isForeign(home mover.Home, s *mover.State) bool {
	message, _ := home.Mismatch(s)
	return message != ""
}
