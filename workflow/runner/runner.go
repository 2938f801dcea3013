package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// ErrDifferentDefinition means that the log already contains a run with this ID but with another
// definition.
var ErrDifferentDefinition = errors.New("the log contains the run with another definition")

// ErrUnrecorded means that a stopping process could not record the results of its tasks.
var ErrUnrecorded = errors.New("the results of the last tasks were not recorded")

// Runner drives runs. Its fields must be set before use and not be changed afterwards.
type Runner struct {
	Log aggregate.Log
	// Incarnation identifies this process. It changes when the process restarts.
	Incarnation string
	// Origin is the ID of the log if its runs are local, otherwise "". It makes the keys of runs in
	// different folders differ.
	Origin string
	// Kinds returns the kinds that a run may use: the kinds of the process, and the kinds of the run's
	// named workflow.
	Kinds func(ctx context.Context, h workflow.Header) (task.Kinds, error)
	// Adopted returns the Digest that the WorkflowRun of a run has adopted, or "". If it is nil, no
	// adoption is needed.
	Adopted func(ctx context.Context, id string) (string, error)
	// Parallel limits how many effects of one run are in flight. Default: 16.
	Parallel int
	// Slots limits how many runs work at the same time. Runs that only wait do not count. nil means no
	// limit.
	Slots *fair.Slots
	// Dir returns the directory for a run's files. A nil Dir or "" means none.
	Dir    func(id string) string
	Logger *slog.Logger
	Quota  supervise.Quota
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	supervise.Drivers
}

const defaultParallel = 16

func (r *Runner) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

func (r *Runner) parallel() int { return cmp.Or(max(r.Parallel, 0), defaultParallel) }

// Supervisor returns a supervisor that drives every unfinished run of a view, except runs that wait
// for an operator or are stranded in this process. The caller notifies it of changes in the view.
func (r *Runner) Supervisor(v *Runs) *supervise.Supervisor {
	v.Incarnation = r.Incarnation
	return &supervise.Supervisor{
		Noun: "run", IDs: v.IDs, Due: v.Due, Drive: r.Drive, Drivers: &r.Drivers, Logger: r.Logger,
	}
}

// Request creates a run. It is idempotent, and returns ErrDifferentDefinition if a run with this ID
// has another definition.
func (r *Runner) Request(ctx context.Context, id, actor string, d *workflow.Definition) error {
	_, err := r.update(ctx, id, actor, func(a *run) error {
		switch {
		case !a.State.IsDefined():
			// A process that died during Request may have stored some of these events: store them again.
			now := a.Time()
			return a.Record(now, workflow.Start(d, r.Origin, now)...)
		case a.State.Hash != d.Hash():
			return fmt.Errorf("%s: %w", id, ErrDifferentDefinition)
		default:
			return nil
		}
	})
	return err
}

// Command records an operator's command. An error that is not from the log says why the command was
// rejected.
func (r *Runner) Command(ctx context.Context, id, actor string, in workflow.Input) error {
	_, err := r.Change(ctx, id, actor, in, func(string) error { return nil })
	return err
}

// Change records a command if permit allows it. permit is called with the Digest of the run before
// the command. Change returns the Digest after the command.
func (r *Runner) Change(ctx context.Context, id, actor string, in workflow.Input, permit func(digest string) error) (digest string, err error) {
	return r.update(ctx, id, actor, func(a *run) error {
		if err := permit(a.digest); err != nil {
			return err
		}
		if a.Seq == 0 {
			return fmt.Errorf("the run %q is not in the log", id)
		}
		_, err := a.decide(in)
		return err
	})
}

// update calls change and stores the events that change has recorded. After a conflict it reads the
// run again and repeats this.
func (r *Runner) update(ctx context.Context, id, actor string, change func(*run) error) (digest string, err error) {
	for {
		a, err := r.load(ctx, id, actor)
		if err == nil {
			err = change(a)
		}
		if err == nil {
			err = a.Store(ctx)
		}
		if !errors.Is(err, eventlog.ErrConflict) {
			return a.digest, err
		}
	}
}

// Discard deletes the files of a run that has ended.
func (r *Runner) Discard(id string) error {
	if r.Dir == nil || r.Dir(id) == "" || id == "." || !fs.ValidPath(id) { // the user chose the ID
		return nil
	}
	dir := r.Dir(id)
	err := os.RemoveAll(dir)
	_ = os.Remove(filepath.Dir(dir)) // fails if another run with this name has files there
	return err
}

// WithFiles returns the IDs of a WorkflowRun's runs that have a directory, or of all runs if
// namespace and name are empty.
func (r *Runner) WithFiles(namespace, name string) []string {
	folder := namespace + "/" + name
	switch {
	case r.Dir == nil || r.Dir(".") == "" || strings.ContainsAny(folder, `*?[\`): // the user chose the name
		return nil
	case namespace == "":
		folder = "*/*"
	}
	ids, _ := fs.Glob(os.DirFS(r.Dir(".")), folder+"/*") // the pattern is valid
	return slices.DeleteFunc(ids, func(id string) bool { return !isResourceRun(path.Base(id)) })
}

// State reads a run from the log. It returns the run's state and the sequence of its last commit.
func (r *Runner) State(ctx context.Context, id string) (*workflow.State, uint64, error) {
	a, err := r.load(ctx, id, "")
	return a.State, a.Seq, err
}

// logTimeout is how long a driver retries while the log is unavailable.
const logTimeout = 2 * time.Minute

// retry retries fn only while the log is unavailable.
func retry(ctx context.Context, fn func() error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(logTimeout))
	return backoff.Retry(func() error {
		err := fn()
		if err != nil && !errors.Is(err, eventlog.ErrUnavailable) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx))
}

// Runs is a view of the runs in the log. Its fields must be set before use and not be changed
// afterwards.
//
// Only the cost of Status depends on the size of a run. Call Status at most a few times a second.
type Runs struct {
	*aggregate.View[workflow.Event, *viewState, v1alpha1.WorkflowRunStatus]
	LogID string
	// Incarnation identifies this process. A run that is stranded in this process is not due until the
	// run changes.
	Incarnation string
}

type viewState struct {
	// state is nil once the run has ended, because a large graph takes much memory.
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

func (s *viewState) isDefined() bool { return s.state == nil || s.state.IsDefined() }

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

// Summary returns the summary of a run. ok is false while the log lacks part of its definition.
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

// isOpen reports whether a run of a WorkflowRun is unfinished and not stopping. It returns false
// for a local run, which may have no WorkflowRun.
func isOpen(id string, e *aggregate.Entry[*viewState]) bool {
	s := e.State
	return isResourceRun(path.Base(id)) && e.Err == nil && !s.finished() && s.isDefined() &&
		!s.summary.Stopping && !s.summary.Settled
}

// isResourceRun reports whether the last part of an ID is the start of a UID, as in the ID of a
// WorkflowRun's run.
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
