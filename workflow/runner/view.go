package runner

import (
	"path"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// Runs is the view of the runs in the log. Its fields are set before use and not changed.
//
// The cost of Summary, Due and Totals does not depend on the size of a run. Status reads all tasks of a run: call it a few times a second at most.
type Runs struct {
	*aggregate.View[workflow.Event, *viewState, v1alpha1.WorkflowRunStatus]
	// LogID is the ID of the log.
	LogID string
	// Incarnation identifies this process. A run that is stranded in it is not due until the run has changed.
	Incarnation string
}

// viewState is a run of the view.
type viewState struct {
	// state is nil once the run has ended, because it does not change any more and a large graph takes much memory.
	state   *workflow.State
	status  v1alpha1.WorkflowRunStatus // of a run that has ended
	summary workflow.Summary           // after the last commit
}

// Apply applies one event.
func (s *viewState) Apply(e workflow.Event, at time.Time) {
	if s.state != nil {
		s.state.Apply(e, at)
	}
}

// ClaimedBy returns "", because a view never claims a run.
func (*viewState) ClaimedBy() string { return "" }

// Folded updates the summary after a commit.
func (s *viewState) Folded() {
	if s.state == nil {
		return
	}
	s.summary = workflow.Summarize(s.state)
	if s.state.Finished() {
		s.status, s.state = workflow.Status(s.state), nil
	}
}

// isDefined reports whether the log contains the run's whole definition.
func (s *viewState) isDefined() bool { return s.state == nil || s.state.IsDefined() }

// finished reports whether the run has ended and cannot be resumed. An aborted run can be resumed.
func (s *viewState) finished() bool { return s.state == nil }

// NewRuns returns an empty view.
func NewRuns() *Runs {
	v := &Runs{}
	v.View = aggregate.NewView(aggregate.Kind[workflow.Event, *viewState, v1alpha1.WorkflowRunStatus]{
		Name: eventlog.KindRun, Catalog: workflow.NewCatalog(), New: func() *viewState { return &viewState{state: new(workflow.State)} },
		Ended: (*viewState).finished, Open: isOpen, Due: v.due, Status: v.status,
	})
	return v
}

// Summary returns the summary of a run. ok is false while the log does not contain its whole definition.
func (v *Runs) Summary(id string) (g workflow.Summary, ok bool) {
	v.Read(id, func(e *aggregate.Entry[*viewState]) {
		if e == nil || e.Err == nil && !e.State.isDefined() {
			return
		}
		ok, g = true, e.State.summary
		if e.Err != nil {
			g.Phase = v1alpha1.RunStranded
		}
	})
	return g, ok
}

func (v *Runs) status(id string, e *aggregate.Entry[*viewState]) (status v1alpha1.WorkflowRunStatus, known bool) {
	switch {
	case e.Err == nil && !e.State.isDefined():
		return status, false
	case e.State.finished():
		status = *e.State.status.DeepCopy()
	default:
		status = workflow.Status(e.State.state)
	}
	status.RunID, status.LogID, status.LogSequence = id, v.LogID, int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	if e.Err != nil {
		status.Phase, status.Message = v1alpha1.RunStranded, "stranded: "+e.Err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	return status, true
}

// isOpen reports whether a run has neither ended nor been stopped. It returns false for a run that was started locally, because it may have no
// WorkflowRun.
func isOpen(id string, e *aggregate.Entry[*viewState]) bool {
	s := e.State
	return isResourceRun(path.Base(id)) && e.Err == nil && !s.finished() && s.isDefined() &&
		!s.summary.Stopping && !s.summary.Settled
}

// isResourceRun reports whether a run was created for a WorkflowRun: then the last part of its ID is the start of a UID.
func isResourceRun(end string) bool {
	const startOfUID = 8
	return len(end) == startOfUID
}

func (v *Runs) due(s *viewState) (wait time.Duration, due bool) {
	if s.finished() || workflow.IsStrandedFor(s.state, v.Incarnation) {
		return 0, false
	}
	now := time.Now()
	if workflow.Due(s.state, now) {
		return 0, true
	}
	at := workflow.NextAt(s.state)
	return at.Sub(now), s.isDefined() && at.After(now)
}

// Totals are sums over all runs.
type Totals struct {
	Phases   map[v1alpha1.RunPhase]int
	Tasks    v1alpha1.TaskCounts
	InFlight int
}

// Totals returns the sums over all runs.
func (v *Runs) Totals() Totals {
	t := Totals{Phases: make(map[v1alpha1.RunPhase]int)}
	for _, e := range v.All() {
		summary := &e.State.summary
		phase := summary.Phase
		if e.Err != nil {
			phase = v1alpha1.RunStranded
		}
		t.Phases[phase]++
		t.InFlight += summary.InFlight
		c := summary.Counts
		t.Tasks.Tasks += c.Tasks
		t.Tasks.Succeeded += c.Succeeded
		t.Tasks.Ignored += c.Ignored
		t.Tasks.Skipped += c.Skipped
		t.Tasks.Failed += c.Failed
		t.Tasks.Paused += c.Paused
		t.Tasks.Running += c.Running
		t.Tasks.Undone += c.Undone
	}
	return t
}
