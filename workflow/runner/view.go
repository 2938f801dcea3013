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

// Runs is the view of the runs in the log: of all of them, until it is told to forget. It is filled by a projector and read by many.
//
// What is asked often (Summary, Due, Totals) costs the same for a run of any size. Status looks at all of a run's tasks:
// ask for it a few times a second at most.
type Runs struct {
	*aggregate.View[workflow.Event, *seen]
	// LogID is the ID of the log that is folded in. It is set before use and not changed.
	LogID string
}

// seen is a run of the view.
type seen struct {
	// state is nil once the run is over: nothing changes any more, and a large graph is not kept for it.
	state   *workflow.State
	status  v1alpha1.WorkflowRunStatus // of a run that is over
	summary workflow.Summary           // as of the last commit
	// namespace is known once the definition is, and kept when the state is not.
	namespace string
}

// Apply takes one event in.
func (s *seen) Apply(e workflow.Event, at time.Time) {
	if s.state != nil {
		s.state.Apply(e, at)
	}
}

// ClaimedBy is asked of nobody who only reads.
func (*seen) ClaimedBy() string { return "" }

// Folded keeps what is asked often.
func (s *seen) Folded() {
	if s.state == nil {
		return
	}
	s.summary, s.namespace = workflow.Look(s.state), s.state.Namespace
	if s.state.Finished() {
		s.status, s.state = workflow.Status(s.state), nil
	}
}

// known says that the log has all of the run's definition.
func (s *seen) known() bool { return s.state == nil || s.state.Known() }

// NewRuns makes an empty view.
func NewRuns(changed func(id string)) *Runs {
	empty := func() *seen { return &seen{state: new(workflow.State)} }
	v := &Runs{View: aggregate.NewView(eventlog.KindRun, workflow.NewCatalog(), empty, (*seen).over)}
	v.Changed = changed
	return v
}

// Summary says of a run what can be said at once. ok is false while the log does not have all of its definition.
func (v *Runs) Summary(id string) (g workflow.Summary, ok bool) {
	v.Read(id, func(e *aggregate.Entry[*seen]) {
		if e == nil || e.Err == nil && !e.State.known() {
			return
		}
		ok, g = true, e.State.summary
		if e.Err != nil {
			g.Phase = v1alpha1.RunStranded
		}
	})
	return g, ok
}

// Status is the view of one run, as its resource shows it.
func (v *Runs) Status(id string) (status v1alpha1.WorkflowRunStatus, ok bool) {
	v.Read(id, func(e *aggregate.Entry[*seen]) {
		if e == nil || e.Err == nil && !e.State.known() {
			return
		}
		ok, status = true, v.status(id, e)
	})
	return status, ok
}

func (v *Runs) status(id string, e *aggregate.Entry[*seen]) (status v1alpha1.WorkflowRunStatus) {
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

// over says that the run has ended and cannot be resumed. One that was aborted can.
func (s *seen) over() bool { return s.state == nil }

// Recall reads from the log how a run ended that the view may have forgotten. ended is false for one that the log does not know, or
// that is not over.
func (v *Runs) Recall(ctx context.Context, id string) (status v1alpha1.WorkflowRunStatus, ended bool, err error) {
	e, err := v.View.Recall(ctx, id)
	if err != nil || e == nil {
		return status, false, err
	}
	return v.status(id, e), true, nil
}

// Open are the ids of the runs of a name that a resource asked for, and that have neither ended nor been stopped; of all if both are empty. A run that was begun
// locally and came here is none of them: it may have no resource. Its id ends with a number, and those of older ones say nothing else of it.
func (v *Runs) Open(namespace, name string) (ids []string) {
	for id, e := range v.All() {
		of, end := path.Split(id)
		asked := namespace == "" && name == "" || of == namespace+"/"+name+"/"
		if s := e.State; asked && ofResource(end) && e.Err == nil && s.state != nil && s.known() && !s.summary.Stopping && !s.summary.Settled {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// ofResource says that a resource asked for the run whose id ends so: with the start of a UID.
func ofResource(end string) bool {
	const startOfUID = 8
	return len(end) == startOfUID
}

// Due says that Drive has something to do for a run in this process, at once or after a wait. A run that this process has
// found itself unable to continue with is due again when it has changed.
func (v *Runs) Due(id, incarnation string) (wait time.Duration, due bool) {
	v.Read(id, func(e *aggregate.Entry[*seen]) {
		if e == nil || e.Err != nil || e.State.state == nil || workflow.StrandedHere(e.State.state, incarnation) {
			return
		}
		now := time.Now()
		if due = workflow.Due(e.State.state, now); due {
			return
		}
		if at := workflow.NextAt(e.State.state); e.State.known() && at.After(now) {
			wait, due = at.Sub(now), true
		}
	})
	return wait, due
}

// namespace of a run that is due, "" for another.
func (v *Runs) namespace(id string) (namespace string) {
	v.Read(id, func(e *aggregate.Entry[*seen]) {
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

// Totals sums all runs up.
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
