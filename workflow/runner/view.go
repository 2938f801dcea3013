package runner

import (
	"context"
	"path"
	"slices"
	"time"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// Runs is the view of all runs in the log, except those that Forget has deleted. A projector fills it, and it has many readers.
//
// The cost of Summary, Due and Totals does not depend on the size of a run. Status reads all tasks of a run: call it a few times a second at most.
type Runs struct {
	*aggregate.View[workflow.Event, *viewState]
	// LogID is the ID of the log. It is set before use and not changed.
	LogID string
}

// viewState is a run of the view.
type viewState struct {
	// state is nil once the run has ended, because it does not change any more and a large graph takes much memory.
	state   *workflow.State
	status  v1alpha1.WorkflowRunStatus // of a run that has ended
	summary workflow.Summary           // after the last commit
	// namespace is set once the definition is known. It outlives state.
	namespace string
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
	s.summary, s.namespace = workflow.Summarize(s.state), s.state.Namespace
	if s.state.Finished() {
		s.status, s.state = workflow.Status(s.state), nil
	}
}

// isDefined reports whether the log contains the run's whole definition.
func (s *viewState) isDefined() bool { return s.state == nil || s.state.IsDefined() }

// NewRuns returns an empty view.
func NewRuns(changed func(id string)) *Runs {
	empty := func() *viewState { return &viewState{state: new(workflow.State)} }
	v := &Runs{View: aggregate.NewView(eventlog.KindRun, workflow.NewCatalog(), empty, (*viewState).finished)}
	v.Changed = changed
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

// Status returns the status of a run's WorkflowRun.
func (v *Runs) Status(id string) (status v1alpha1.WorkflowRunStatus, ok bool) {
	v.Read(id, func(e *aggregate.Entry[*viewState]) {
		if e == nil || e.Err == nil && !e.State.isDefined() {
			return
		}
		ok, status = true, v.status(id, e)
	})
	return status, ok
}

func (v *Runs) status(id string, e *aggregate.Entry[*viewState]) (status v1alpha1.WorkflowRunStatus) {
	if e.State.state == nil {
		status = *e.State.status.DeepCopy()
	} else {
		status = workflow.Status(e.State.state)
	}
	status.RunID, status.LogID, status.LogSequence = id, v.LogID, int64(e.Seq) //nolint:gosec // a sequence stays far below 2^63
	if e.Err != nil {
		status.Phase, status.Message = v1alpha1.RunStranded, "stranded: "+e.Err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	return status
}

// finished reports whether the run has ended and cannot be resumed. An aborted run can be resumed.
func (s *viewState) finished() bool { return s.state == nil }

// Recall reads from the log how a run ended that the view may have forgotten. ended is false if the log does not contain the run, or if the run has
// not ended.
func (v *Runs) Recall(ctx context.Context, id string) (status v1alpha1.WorkflowRunStatus, ended bool, err error) {
	e, err := v.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return v.status(id, e), true, nil
}

// Open returns the IDs of the runs of a WorkflowRun that have neither ended nor been stopped; of all WorkflowRuns if namespace and name are empty. It
// omits runs that were started locally, because they may have no WorkflowRun. Their IDs end with a number.
func (v *Runs) Open(namespace, name string) (ids []string) {
	for id, e := range v.All() {
		of, end := path.Split(id)
		asked := namespace == "" && name == "" || of == namespace+"/"+name+"/"
		if s := e.State; asked && isResourceRun(end) && e.Err == nil && s.state != nil && s.isDefined() && !s.summary.Stopping && !s.summary.Settled {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// isResourceRun reports whether a run was created for a WorkflowRun: then the last part of its ID is the start of a UID.
func isResourceRun(end string) bool {
	const startOfUID = 8
	return len(end) == startOfUID
}

// Due reports whether Drive has work for a run in this process, at once or after a wait. A run that is stranded in this process is due again when it
// has changed.
func (v *Runs) Due(id, incarnation string) (wait time.Duration, due bool) {
	v.Read(id, func(e *aggregate.Entry[*viewState]) {
		if e == nil || e.Err != nil || e.State.state == nil || workflow.IsStrandedFor(e.State.state, incarnation) {
			return
		}
		now := time.Now()
		if due = workflow.Due(e.State.state, now); due {
			return
		}
		if at := workflow.NextAt(e.State.state); e.State.isDefined() && at.After(now) {
			wait, due = at.Sub(now), true
		}
	})
	return wait, due
}

// namespace returns the namespace of a run, or "" if the run is unknown.
func (v *Runs) namespace(id string) (namespace string) {
	v.Read(id, func(e *aggregate.Entry[*viewState]) {
		if e != nil {
			namespace = e.State.namespace
		}
	})
	return namespace
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
