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
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// ErrDifferentDefinition is returned when the log contains a run with the same ID and another definition.
var ErrDifferentDefinition = errors.New("the log contains the run with another definition")

// ErrUnrecorded is returned when a stopping process could not record the results of its tasks.
var ErrUnrecorded = errors.New("the results of the last tasks were not recorded")

// Runner drives runs. Its fields are set before use and not changed.
type Runner struct {
	Log aggregate.Log
	// Incarnation identifies this process. A restarted process has a different value.
	Incarnation string
	// Origin is the ID of the log for local runs, which makes their keys differ from the keys of runs in other folders. Otherwise it is "".
	Origin string
	// Kinds returns the kinds that a run may use: the kinds of the process and of its named workflow.
	Kinds func(ctx context.Context, h workflow.Header) (task.Kinds, error)
	// Adopted returns the Digest that the WorkflowRun of a run adopts, or "". It may be nil: then the run needs no WorkflowRun.
	Adopted func(ctx context.Context, id string) (string, error)
	// Parallel bounds the effects of one run that are in flight at once. The default is 16.
	Parallel int
	// Slots bounds the runs that work at once; nil means no limit. A run that only waits holds no
	// slot.
	Slots *fair.Slots
	// Dir returns the folder for the files of a run; nil or "" means none.
	Dir    func(id string) string
	Logger *slog.Logger
	// Quota is the quota of each namespace.
	Quota supervise.Quota
	// Now is the clock; nil is time.Now.
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

// drivenLimit bounds the runs that are driven at once, most of which wait. Each of them keeps its graph in memory.
const drivenLimit = 256

// Supervisor returns a supervisor that drives every unfinished run of a view. The caller notifies it of changes in the view. It does not drive a run
// that waits for an operator, or that is stranded in this process. Slots bounds the runs that work at once.
func (r *Runner) Supervisor(v *Runs) *supervise.Supervisor {
	v.Incarnation = r.Incarnation
	return &supervise.Supervisor{
		Noun: "run", IDs: v.IDs, Due: v.Due, Drive: r.Drive, Drivers: &r.Drivers, Limit: drivenLimit, Logger: r.Logger,
	}
}

// Request creates a run. It is idempotent, and returns ErrDifferentDefinition if a run with this ID has another definition.
func (r *Runner) Request(ctx context.Context, id, actor string, d *workflow.Definition) error {
	_, err := r.update(ctx, id, actor, func(a *run) error {
		switch {
		case !a.State.IsDefined():
			// A process that died during Request may have stored some of these events. They are stored again.
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

// Command records a command of an operator. If the error is not an error of the log, it is the reason for which the command is refused.
func (r *Runner) Command(ctx context.Context, id, actor string, in workflow.Input) error {
	_, err := r.Change(ctx, id, actor, in, func(string) error { return nil })
	return err
}

// Change records a command if permit allows it, which is called with the Digest of the run. It returns the Digest after the command.
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

// update stores the events that change records for a run, and returns the Digest of the run after them. If another process has appended first, it
// calls change again.
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

// Discard deletes the folder of a run that has ended.
func (r *Runner) Discard(id string) error {
	if r.Dir == nil || r.Dir(id) == "" || id == "." || !fs.ValidPath(id) { // a user may have chosen the ID
		return nil
	}
	dir := r.Dir(id)
	err := os.RemoveAll(dir)
	_ = os.Remove(filepath.Dir(dir)) // fails if another run of this name has files there
	return err
}

// WithFiles returns the IDs of the runs of a WorkflowRun that have a folder; of all WorkflowRuns if namespace and name are empty.
func (r *Runner) WithFiles(namespace, name string) []string {
	folder := namespace + "/" + name
	switch {
	case r.Dir == nil || r.Dir(".") == "" || strings.ContainsAny(folder, `*?[\`): // a user may have chosen the ID
		return nil
	case namespace == "":
		folder = "*/*"
	}
	ids, _ := fs.Glob(os.DirFS(r.Dir(".")), folder+"/*") // the pattern is valid
	return slices.DeleteFunc(ids, func(id string) bool { return !isResourceRun(path.Base(id)) })
}

// State reads a run from the log.
func (r *Runner) State(ctx context.Context, id string) (*workflow.State, uint64, error) {
	a, err := r.load(ctx, id, "")
	return a.State, a.Seq, err
}

// logTimeout is how long a driver retries while the log is unavailable.
const logTimeout = 2 * time.Minute

// retry retries fn while the log is unavailable.
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
