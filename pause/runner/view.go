package runner

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/pause/request"
)

// Pauses is the view of the pauses in the log: of all of them, until it is told to forget. It is filled by a projector and read by many.
type Pauses struct {
	*aggregate.View[request.Event, *request.State]
	// LogID is the ID of the log that is folded in. It is set before use and not changed.
	LogID string
}

// NewPauses makes an empty view.
func NewPauses(changed func(id string)) *Pauses {
	empty := func() *request.State { return new(request.State) }
	v := &Pauses{View: aggregate.NewView(eventlog.KindPause, request.NewCatalog(), empty, (*request.State).Finished)}
	v.Changed = changed
	return v
}

// Status is the view of one pause.
func (p *Pauses) Status(id string) (status v1alpha1.PauseStatus, known bool) {
	p.Read(id, func(e *aggregate.Entry[*request.State]) {
		if e != nil {
			known, status = true, p.status(id, e)
		}
	})
	return status, known
}

func (p *Pauses) status(id string, e *aggregate.Entry[*request.State]) v1alpha1.PauseStatus {
	status := request.Status(e.State)
	status.PauseID, status.LogID, status.LogSequence = id, p.LogID, int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	if e.Err != nil {
		status.Message = "stopped: " + e.Err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	return status
}

// Recall reads from the log how a pause ended that the view may have forgotten. ended is false for one that the log does not know, or
// that is not over.
func (p *Pauses) Recall(ctx context.Context, id string) (status v1alpha1.PauseStatus, ended bool, err error) {
	e, err := p.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return p.status(id, e), true, nil
}

// Spec is what was asked for with one pause.
func (p *Pauses) Spec(id string) (spec request.Spec, known bool) {
	p.Read(id, func(e *aggregate.Entry[*request.State]) {
		if e != nil {
			spec, known = e.State.Spec, true
		}
	})
	return spec, known
}

// Open are the ids of the pauses of a name that are not over, in any namespace and of any name where both are empty.
func (p *Pauses) Open(namespace, name string) []string {
	return p.Where(func(e *aggregate.Entry[*request.State]) bool {
		s := e.State
		return !s.Finished() && (namespace == "" && name == "" || s.Spec.Namespace == namespace && s.Spec.Name == name)
	})
}

func (p *Pauses) namespace(id string) string {
	spec, _ := p.Spec(id)
	return spec.Namespace
}

// due says that Drive has something to do for a pause: as long as it is not over.
func (p *Pauses) due(id string) (wait time.Duration, due bool) {
	p.Read(id, func(e *aggregate.Entry[*request.State]) {
		due = e != nil && e.Err == nil && e.State.Phase != "" && !e.State.Finished()
	})
	return 0, due
}
