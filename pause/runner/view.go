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
	// Changed is called after a pause has changed, from the projector's goroutine; it must not block. May be nil.
	Changed func(id string)
	// LogID is the ID of the log that is folded in. It is set before use and not changed.
	LogID string
	// Log is where Recall reads. It is set before use and not changed.
	Log aggregate.Log

	view *aggregate.View[request.Event, *request.State]
}

// NewPauses makes an empty view.
func NewPauses(changed func(id string)) *Pauses {
	empty := func() *request.State { return new(request.State) }
	return &Pauses{Changed: changed, view: aggregate.NewView(eventlog.KindPause, request.NewCatalog(), empty)}
}

// Apply folds a commit in; commits about anything but pauses are passed over.
func (p *Pauses) Apply(r eventlog.Record) error {
	mine, err := p.view.Apply(r)
	if mine && p.Changed != nil {
		p.Changed(r.Aggregate.ID)
	}
	return err
}

// Status is the view of one pause.
func (p *Pauses) Status(id string) (status v1alpha1.PauseStatus, known bool) {
	p.view.Read(id, func(e *aggregate.Entry[*request.State]) {
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

// Forget drops the pauses that are over.
func (p *Pauses) Forget() { p.view.Forget((*request.State).Finished) }

// Recall reads from the log how a pause ended that the view may have forgotten. ended is false for one that the log does not know, or
// that is not over.
func (p *Pauses) Recall(ctx context.Context, id string) (status v1alpha1.PauseStatus, ended bool, err error) {
	e, err := p.view.Recall(ctx, p.Log, id, (*request.State).Finished)
	if err != nil || e == nil {
		return status, false, err
	}
	return p.status(id, e), true, nil
}

// Spec is what was asked for with one pause.
func (p *Pauses) Spec(id string) (spec request.Spec, known bool) {
	p.view.Read(id, func(e *aggregate.Entry[*request.State]) {
		if e != nil {
			spec, known = e.State.Spec, true
		}
	})
	return spec, known
}

// Look calls fn with what is known of one pause, nil if nothing is. fn keeps nothing of it.
func (p *Pauses) Look(id string, fn func(*request.State)) {
	p.view.Read(id, func(e *aggregate.Entry[*request.State]) {
		if e == nil {
			fn(nil)
			return
		}
		fn(e.State)
	})
}

// Open are the ids of the pauses of a name that are not over, in any namespace and of any name where both are empty.
func (p *Pauses) Open(namespace, name string) []string {
	return p.view.Where(func(e *aggregate.Entry[*request.State]) bool {
		s := e.State
		return !s.Finished() && (namespace == "" && name == "" || s.Spec.Namespace == namespace && s.Spec.Name == name)
	})
}

func (p *Pauses) namespace(id string) string {
	spec, _ := p.Spec(id)
	return spec.Namespace
}

// Due says that Drive has something to do for a pause: as long as it is not over.
func (p *Pauses) Due(id string) (wait time.Duration, due bool) {
	p.view.Read(id, func(e *aggregate.Entry[*request.State]) {
		due = e != nil && e.Err == nil && e.State.Phase != "" && !e.State.Finished()
	})
	return 0, due
}

// IDs lists all pauses.
func (p *Pauses) IDs() []string { return p.view.IDs() }

// Snapshot implements projector.Snapshotter.
func (p *Pauses) Snapshot(put func(part string, data []byte) error) error {
	return p.view.Snapshot(put)
}

// Restore implements projector.Snapshotter. Nobody is told of what it restores.
func (p *Pauses) Restore(part string, data []byte) error { return p.view.Restore(part, data) }
