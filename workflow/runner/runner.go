package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// ErrOther says that the log has a run of this id with another definition.
var ErrOther = errors.New("the run is in the log with another definition")

// ErrUnrecorded says that a process which was asked to end could not record what had come of its tasks.
var ErrUnrecorded = errors.New("what was done last is not recorded")

// Runner drives runs. Its fields are set before use and not changed.
type Runner struct {
	Log aggregate.Log
	// Incarnation names this very process; a restarted process has another.
	Incarnation string
	// Origin is the ID of the log, where local runs are begun: it tells their keys from those of runs of other folders. Else it is "".
	Origin string
	// Kinds are those that a run may use: those of the process, and those of its named workflow.
	Kinds func(ctx context.Context, h workflow.Header) (task.Kinds, error)
	// Adopted returns the Digest that the WorkflowRun of a run adopts, "" without. May be nil: then the run needs no WorkflowRun.
	Adopted func(ctx context.Context, id string) (string, error)
	// Parallel bounds the effects of one run that are in flight at once. Default 16.
	Parallel int
	// Places bound the runs that work at once; nil is no bound. A run that only waits holds none.
	Places *supervise.Places
	// Dir is a folder for what a run writes to disk; nil or "" is none.
	Dir    func(id string) string
	Logger *slog.Logger
	// Quota is that of each namespace.
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

func (r *Runner) parallel() int {
	if r.Parallel > 0 {
		return r.Parallel
	}
	return defaultParallel
}

// Request asks for a run. Asking again for the same one changes nothing; what is there of another definition under this
// id is ErrOther.
func (r *Runner) Request(ctx context.Context, id, actor string, d *workflow.Definition) error {
	for {
		a, err := r.load(ctx, id, actor)
		if err != nil {
			return err
		}
		if a.State.Known() {
			if a.State.Hash != d.Hash() {
				return fmt.Errorf("%s: %w", id, ErrOther)
			}
			return nil
		}
		// A process that died in the middle of this may have left some of the parts: they are told again.
		now := a.Time()
		if err := a.Record(now, workflow.Start(d, r.Origin, now)...); err != nil {
			return err
		}
		if err := a.Store(ctx); !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
	}
}

// Command records what an operator wants of a run. An error that is not of the log says why it is refused.
func (r *Runner) Command(ctx context.Context, id, actor string, in workflow.Input) error {
	_, err := r.Change(ctx, id, actor, in, func(string) error { return nil })
	return err
}

// Change is Command if permit allows it, which is asked with the Digest of the run before it. It returns the one after it.
func (r *Runner) Change(ctx context.Context, id, actor string, in workflow.Input, permit func(digest string) error) (digest string, err error) {
	for {
		a, err := r.load(ctx, id, actor)
		if err == nil {
			err = permit(a.brought)
		}
		if err != nil {
			return "", err
		}
		if a.Seq == 0 {
			return "", fmt.Errorf("the run %q is not in the log", id)
		}
		if _, err := a.decide(in); err != nil {
			return "", err
		}
		if err := a.Store(ctx); !errors.Is(err, eventlog.ErrConflict) {
			return a.brought, err
		}
	}
}

// Discard removes the folder of a run that is over: nobody asks for its files any more.
func (r *Runner) Discard(id string) error {
	if r.Dir == nil || r.Dir(id) == "" || id == "." || !fs.ValidPath(id) { // an id may be of a user's making
		return nil
	}
	dir := r.Dir(id)
	err := os.RemoveAll(dir)
	_ = os.Remove(filepath.Dir(dir)) // unless another run of that name has files there
	return err
}

// Left are the ids of the runs of a name that have a folder, and that a resource asked for; of all namespaces and names, where both are empty.
func (r *Runner) Left(namespace, name string) (ids []string, err error) {
	if r.Dir == nil || r.Dir(".") == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(r.Dir("."))
	if err != nil {
		return nil, notThere(err)
	}
	defer root.Close()
	folders := []string{namespace + "/" + name}
	if namespace == "" {
		if folders, err = fs.Glob(root.FS(), "*/*"); err != nil {
			return nil, err
		}
	}
	for _, folder := range folders {
		entries, err := fs.ReadDir(root.FS(), folder)
		if notThere(err) != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() && ofResource(e.Name()) {
				ids = append(ids, folder+"/"+e.Name())
			}
		}
	}
	return ids, nil
}

// notThere is no error where a file, or a folder, is not there.
func notThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// State reads a run from the log.
func (r *Runner) State(ctx context.Context, id string) (*workflow.State, uint64, error) {
	a, err := r.load(ctx, id, "")
	return a.State, a.Seq, err
}

// patience is how long a driver tries to reach the log again.
const patience = 2 * time.Minute

// retried runs fn again while the log cannot be reached.
func retried(ctx context.Context, fn func() error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(patience))
	return backoff.Retry(func() error {
		err := fn()
		if err != nil && !errors.Is(err, eventlog.ErrUnavailable) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx))
}
