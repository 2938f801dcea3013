package runner

import (
	"maps"
	"slices"
	"sync"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// Runs is the view of all runs in the log. It is filled by a projector and read by many.
//
// What is asked often (Glance, Due, Totals) costs the same for a run of any size. Status looks at all of a run's tasks:
// ask for it a few times a second at most.
type Runs struct {
	// Changed is called after a run has changed, from the projector's goroutine; it must not block. May be nil.
	Changed func(id string)
	// LogID is the ID of the log that is folded in. It is set before use and not changed.
	LogID string

	catalog *eventlog.Catalog[workflow.Event]
	mu      sync.RWMutex
	runs    map[string]*entry
}

type entry struct {
	// state is nil once the run is over: nothing changes any more, and a large graph is not kept for it.
	state  *workflow.State
	status v1alpha1.WorkflowStatus // of a run that is over
	glance workflow.Glance         // as of the last commit
	// namespace is known once the definition is, and kept when the state is not.
	namespace string
	seq       uint64
	err       error // the log holds something about the run that this program cannot read
}

// NewRuns makes an empty view.
func NewRuns(changed func(id string)) *Runs {
	return &Runs{Changed: changed, catalog: workflow.NewCatalog(), runs: make(map[string]*entry)}
}

// Apply folds a commit in; commits about anything but runs are passed over.
func (v *Runs) Apply(r eventlog.Record) error {
	if r.Aggregate.Kind != eventlog.KindRun {
		return nil
	}
	err := v.apply(r)
	if v.Changed != nil {
		v.Changed(r.Aggregate.ID)
	}
	return err
}

func (v *Runs) apply(r eventlog.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.runs[r.Aggregate.ID]
	if e == nil {
		e = &entry{state: new(workflow.State)}
		v.runs[r.Aggregate.ID] = e
	}
	e.seq = r.Seq
	if e.state == nil {
		return nil
	}
	if e.err = Fold(e.state, v.catalog, r); e.err != nil {
		return e.err
	}
	e.glance, e.namespace = workflow.Look(e.state), e.state.Namespace
	if e.state.Finished() {
		e.status, e.state = workflow.Status(e.state), nil
	}
	return nil
}

// Glance says of a run what can be said at once. ok is false while the log does not have all of its definition.
func (v *Runs) Glance(id string) (g workflow.Glance, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.runs[id]
	if e == nil || e.err == nil && e.state != nil && !e.state.Known() {
		return g, false
	}
	g = e.glance
	if e.err != nil {
		g.Phase = v1alpha1.RunStranded
	}
	return g, true
}

// Status is the view of one run, as its resource shows it.
func (v *Runs) Status(id string) (status v1alpha1.WorkflowStatus, ok bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.runs[id]
	if e == nil || e.err == nil && e.state != nil && !e.state.Known() {
		return status, false
	}
	if e.state == nil {
		status = *e.status.DeepCopy()
	} else {
		status = workflow.Status(e.state)
	}
	status.RunID, status.LogID, status.LogSequence = id, v.LogID, int64(e.seq) //nolint:gosec // a sequence stays far below 2^63
	if e.err != nil {
		status.Phase, status.Message = v1alpha1.RunStranded, "stranded: "+e.err.Error()
		status.Next = "run the version of scute that wrote this event, or a newer one"
	}
	return status, true
}

// Due lists the runs that Drive has something to do for in this process. One that this process has found itself unable to
// go on with is due again when it has changed.
func (v *Runs) Due(incarnation string) []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	now := time.Now()
	var ids []string
	for id, e := range v.runs {
		if e.err == nil && e.state != nil && workflow.Due(e.state, now) && !workflow.StrandedHere(e.state, incarnation) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// namespace of a run that is due, "" for another.
func (v *Runs) namespace(id string) string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if e := v.runs[id]; e != nil {
		return e.namespace
	}
	return ""
}

// IDs lists all runs.
func (v *Runs) IDs() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Sorted(maps.Keys(v.runs))
}

// Totals are sums over all runs.
type Totals struct {
	Phases   map[v1alpha1.RunPhase]int
	Tasks    v1alpha1.WorkflowCounts
	InFlight int
}

// Totals sums all runs up.
func (v *Runs) Totals() Totals {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t := Totals{Phases: make(map[v1alpha1.RunPhase]int)}
	for _, e := range v.runs {
		phase := e.glance.Phase
		if e.err != nil {
			phase = v1alpha1.RunStranded
		}
		t.Phases[phase]++
		t.InFlight += e.glance.InFlight
		c := e.glance.Counts
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
