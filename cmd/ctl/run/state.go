package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// Run is the state of a run.
type Run struct {
	Namespace, Name string
	// ID is the run's ID in the log, or "" if no daemon has started the run.
	ID string
	// Status contains only the most important tasks. The method Tasks returns all tasks.
	Status v1alpha1.WorkflowRunStatus
	// State is nil if only the resource could be read.
	State *workflow.State
	// History is nil if only the resource could be read.
	History   *history
	Seq       uint64
	CreatedAt time.Time
	// Local is true if the run is in the log of a folder that no other process has open.
	Local bool
}

// Tasks returns all tasks. If the log was not read, it returns only the tasks in the status.
func (r *Run) Tasks() []v1alpha1.TaskStatus {
	if r.State == nil {
		return r.Status.Tasks
	}
	all := make([]v1alpha1.TaskStatus, r.State.Tasks())
	for i := range all {
		all[i] = r.State.TaskStatus(i)
	}
	return all
}

// Phase returns the phase of the run.
func (r *Run) Phase() v1alpha1.RunPhase {
	if r.Status.Phase == "" {
		return v1alpha1.RunPending
	}
	return r.Status.Phase
}

// isFinished reports whether a run in this phase has ended and cannot be resumed.
func isFinished(p v1alpha1.RunPhase) bool {
	return p == v1alpha1.RunSucceeded || p == v1alpha1.RunDegraded || p == v1alpha1.RunRolledBack || p == v1alpha1.RunFailed
}

// isIdle reports whether a run in this phase continues only after an operator's command, or never.
func isIdle(p v1alpha1.RunPhase) bool {
	return p == v1alpha1.RunPaused || p == v1alpha1.RunAborted || p == v1alpha1.RunRollbackFailed || p == v1alpha1.RunStranded || isFinished(p)
}

// refused reports whether the daemon rejected the manifest and started nothing.
func (r *Run) refused() bool { return r.ID == "" && r.Status.FinishedAt != nil }

// isIdle reports whether the run continues only after an operator's command, or never. A run that
// the daemon refused is idle.
func (r *Run) isIdle() bool { return r.refused() || r.ID != "" && isIdle(r.Phase()) }

// Fold is the state of a run, computed from its commits.
type Fold struct {
	Run
	Last    workflow.Event
	catalog *eventlog.Catalog[workflow.Event]
}

// NewFold returns a Fold without commits.
func NewFold(id string) *Fold {
	return &Fold{
		Run:     Run{ID: id, State: new(workflow.State), History: newHistory()},
		catalog: workflow.NewCatalog(),
	}
}

// Apply applies a commit. An error leaves the state unchanged.
func (f *Fold) Apply(r eventlog.Record) error {
	if r.Seq <= f.Seq {
		return nil
	}
	err := f.catalog.Each(r, func(fact workflow.Event, ev eventlog.Event) {
		if f.CreatedAt.IsZero() {
			f.CreatedAt = ev.Time
		}
		before, from := f.State.Definition(), f.State.Hash
		f.State.Apply(fact, ev.Time)
		f.History.apply(fact, ev)
		if e, ok := fact.(workflow.Migrated); ok {
			m := migration(e, from, before, f.State.Definition())
			m.At, m.Actor = ev.Time, kit.Actor(ev.Actor)
			f.History.Migrations = append(f.History.Migrations, m)
		}
		f.Last = fact
	})
	if err != nil {
		return fmt.Errorf("commit %d: %w: use the scutectl that wrote it, or a newer one", r.Seq, err)
	}
	f.Seq = r.Seq
	return nil
}

// Refresh updates the status and returns the run. The result is shared: later commits change it.
func (f *Fold) Refresh() *Run {
	f.Namespace, f.Name = f.State.Namespace, f.State.Name
	f.Status = workflow.Status(f.State)
	f.Status.RunID, f.Status.LogSequence = f.ID, int64(f.Seq) //nolint:gosec // a sequence stays far below 2^63
	return &f.Run
}

// keyOf returns the namespace and name contained in the ID of a run: namespace/name/rest.
func keyOf(id string) types.NamespacedName {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 3 {
		return types.NamespacedName{Name: id}
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}
}

func newFold(log *connect.Log, id string) *Fold {
	f := NewFold(id)
	f.Local = log.Static
	return f
}

// Items returns a copy of the run. Later commits do not change the copy.
func (f *Fold) Items() []*Run {
	r := *f.Refresh()
	return []*Run{&r}
}

func fold(ctx context.Context, log *connect.Log, id string) (*Fold, error) {
	records, err := log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
	if err != nil {
		return nil, fmt.Errorf("reading run %s from the log at %s: %w", id, log.Where, err)
	}
	f := newFold(log, id)
	for _, r := range records {
		if err := f.Apply(r); err != nil {
			return nil, fmt.Errorf("reading run %s: %w", id, err)
		}
	}
	return f, nil
}

func fromResource(o runtime.Object) *Run {
	w, _ := o.(*v1alpha1.WorkflowRun) // New and NewList return nothing else
	return &Run{Namespace: w.Namespace, Name: w.Name, ID: w.Status.RunID, Status: w.Status, CreatedAt: w.CreationTimestamp.Time}
}
