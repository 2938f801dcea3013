package runner

import (
	"context"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/pause/request"
)

// Pauses is the view of the pauses in the log that Forget has not deleted. A projector applies commits; reading is safe for concurrent use.
type Pauses struct {
	*aggregate.View[request.Event, *request.State]
	// LogID is the ID of the log. It is set before use and not changed.
	LogID string
}

// NewPauses returns an empty view.
func NewPauses(changed func(id string)) *Pauses {
	empty := func() *request.State { return new(request.State) }
	v := &Pauses{View: aggregate.NewView(eventlog.KindPause, request.NewCatalog(), empty, (*request.State).Finished)}
	v.Changed = changed
	return v
}

// Status returns the status of a pause.
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

// Recall reads from the log the final status of a pause that Forget may have deleted. ended is false if the pause is not in the log, or is not over.
func (p *Pauses) Recall(ctx context.Context, id string) (status v1alpha1.PauseStatus, ended bool, err error) {
	e, err := p.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return p.status(id, e), true, nil
}

// Spec returns the specification of a pause.
func (p *Pauses) Spec(id string) (spec request.Spec, known bool) {
	p.Read(id, func(e *aggregate.Entry[*request.State]) {
		if e != nil {
			spec, known = e.State.Spec, true
		}
	})
	return spec, known
}

// Open returns the IDs of the unfinished pauses with a name, or of all unfinished pauses if namespace and name are empty.
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

// due reports whether a pause must be driven, that is, whether it is not over.
func (p *Pauses) due(id string) (wait time.Duration, due bool) {
	p.Read(id, func(e *aggregate.Entry[*request.State]) {
		due = e != nil && e.Err == nil && e.State.Phase != "" && !e.State.Finished()
	})
	return 0, due
}
