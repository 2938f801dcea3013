package runner

import (
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/pause/request"
)

// Pauses is the view of the pauses in the log.
type Pauses struct {
	*aggregate.View[request.Event, *request.State, v1alpha1.PauseStatus]
	// LogID is the ID of the log. Set it before use.
	LogID string
}

// NewPauses returns an empty view.
func NewPauses() *Pauses {
	p := &Pauses{}
	p.View = aggregate.NewView(aggregate.Kind[request.Event, *request.State, v1alpha1.PauseStatus]{
		Name: eventlog.KindPause, Catalog: request.NewCatalog(), New: func() *request.State { return new(request.State) },
		Ended:  (*request.State).Finished,
		Open:   func(_ string, e *aggregate.Entry[*request.State]) bool { return !e.State.Finished() },
		Due:    func(s *request.State) (time.Duration, bool) { return 0, isDue(s) },
		Status: p.status,
	})
	return p
}

func isDue(s *request.State) bool { return s.Phase != "" && !s.Finished() }

func (p *Pauses) status(id string, e *aggregate.Entry[*request.State]) (status v1alpha1.PauseStatus, known bool) {
	status = request.Status(e.State)
	status.PauseID, status.LogID, status.LogSequence = id, p.LogID, int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	if e.Err != nil {
		status.Message = "stopped: " + e.Err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	return status, true
}
