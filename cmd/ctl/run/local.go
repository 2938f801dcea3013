package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
)

// local drives the runs of a folder in this process, and holds the folder's lock.
type local struct {
	*deps
	log    *connect.Log
	runner *runner.Runner
}

// openLocal creates the folder if it does not exist, locks it, and opens its log.
func (d *deps) openLocal(ctx context.Context, policy v1alpha1.FailurePolicy, parallel int) (*local, error) {
	log, err := d.Flags.Serve(ctx, d.Env.Err)
	if err != nil {
		return nil, err
	}
	if err := d.confirmTrust(ctx, log); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	var wrapped aggregate.Log = log
	if d.WrapLog != nil {
		wrapped = d.WrapLog(log)
	}
	host, _ := os.Hostname() // only informs readers of the log
	incarnation := fmt.Sprintf("scutectl-%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:8]))
	return &local{deps: d, log: log, runner: &runner.Runner{
		Log: wrapped, Origin: log.ID(), Incarnation: incarnation, Kinds: d.environment(wrapped, incarnation, policy).KindsFor, Parallel: parallel,
		Dir:    func(id string) string { return filepath.Join(d.Flags.Dir, "runs", filepath.FromSlash(id)) },
		Logger: slog.New(slog.NewTextHandler(d.Env.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}}, nil
}

func (o *runOptions) runLocal(ctx context.Context, w *v1alpha1.WorkflowRun, problems []workflow.Problem, policy v1alpha1.FailurePolicy) error {
	env := o.environment(nil, "", policy)
	_, noFolder := os.Stat(o.Flags.Dir)
	env.Diagnose, env.CheckReads = o.Diagnose, noFolder != nil // the tasks of a started run may no longer need the files
	d, err := o.definition(ctx, env, w.Namespace, w, problems)
	if err != nil {
		return err
	}
	l, err := o.openLocal(ctx, policy, o.Parallel)
	if err != nil {
		return err
	}
	defer l.log.Close()
	id, known, err := l.find(ctx, w.Namespace, w.Name)
	if err != nil {
		return err
	}
	if !known {
		unread, err := env.CheckReadable(ctx, w.Namespace, w.Name, &w.Spec)
		if err != nil {
			return cli.Usagef("reading what the manifest refers to: %w", err)
		}
		if err := o.report(unread); err != nil {
			return err
		}
	}
	_, err = l.drive(ctx, id, &o.Format, func(ctx context.Context, f *Fold) error {
		if known {
			return l.continueRun(ctx, f, d, w.Spec.Suspend, o.File)
		}
		if err := l.runner.Request(ctx, id, connect.Actor(ctx, nil), d); err != nil || !w.Spec.Suspend {
			return err
		}
		return l.runner.Command(ctx, id, connect.Actor(ctx, nil), workflow.PauseRun{Reason: "spec.suspend is true"})
	})
	return err
}

// find returns the ID of the unfinished run with this name. If there is none, it returns an ID for
// a new run, and known is false.
func (l *local) find(ctx context.Context, namespace, name string) (id string, known bool, err error) {
	ids, _, err := (&session{Kit: l.Kit, Noun: l.noun, Log: l.log}).LogSource().Find(ctx)
	if err != nil {
		return "", false, err
	}
	prefix := namespace + "/" + name + "/"
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, prefix) })
	if len(ids) > 0 {
		latest := ids[len(ids)-1]
		s, _, err := l.runner.State(ctx, latest)
		if err != nil {
			return "", false, err
		}
		switch {
		case !s.IsDefined(): // a process was killed while it recorded the run's definition
			return latest, false, nil
		case !s.Finished():
			return latest, true, nil
		}
	}
	n := len(ids) + 1
	for slices.Contains(ids, fmt.Sprint(prefix, n)) {
		n++
	}
	return fmt.Sprint(prefix, n), false, nil
}

// continueRun resumes an unfinished run if its definition is unchanged.
func (l *local) continueRun(ctx context.Context, f *Fold, d *workflow.Definition, suspend bool, file string) error {
	r := f.Refresh()
	if f.State.Hash != d.Hash() {
		return l.checkEdited(r, d, file)
	}
	stopped := "was interrupted"
	if isIdle(r.Phase()) {
		stopped = "is " + string(r.Phase())
	}
	l.Env.Notef("Resuming run %s, which %s. Finished tasks are skipped.", f.ID, stopped)
	if suspend && r.Phase() == v1alpha1.RunPaused {
		l.Env.Notef("spec.suspend is true, so it stays paused: set it to false, or %s", l.Hint(r.Namespace, "resume", "run", r.Name))
		return nil
	}
	return l.resume(ctx, f, "")
}

// resume resumes a run. This process holds the folder's lock, so the process that drove the run
// before has ended.
func (l *local) resume(ctx context.Context, f *Fold, reason string) error {
	if justDecided(f) {
		return nil
	}
	return l.runner.Command(ctx, f.ID, connect.Actor(ctx, nil), workflow.ResumeRun{Reason: reason, ProcessDied: true})
}

// justDecided reports whether the last event is a decision whose effect is still due. In that case
// resume must not retry other tasks.
func justDecided(f *Fold) bool {
	switch f.Last.(type) {
	case workflow.Decided, workflow.TaskReleased, workflow.Migrated, workflow.Resumed, workflow.Started, workflow.Aborted, workflow.RollbackStarted:
		return workflow.Due(f.State, time.Now())
	default:
		return false
	}
}

// drive starts or continues a run, and follows it until it is idle.
func (l *local) drive(ctx context.Context, id string, format *cli.Format, begin func(context.Context, *Fold) error) (*Run, error) {
	head, err := l.log.Head(ctx)
	if err != nil {
		return nil, err
	}
	f, err := fold(ctx, l.log, id)
	if err != nil {
		return nil, err
	}
	if err := l.clusters().CheckSameCluster(ctx, l.runner.Dir(id)); err != nil {
		return nil, cli.Usagef("run %s: %w", id, err)
	}
	if err := begin(ctx, f); err != nil {
		return nil, err
	}
	stop := l.follow(ctx, f, head, format)
	driven := l.runner.Drive(ctx, id)
	r, err := stop()
	switch {
	case ctx.Err() != nil && errors.Is(driven, ctx.Err()):
		return nil, cli.Interrupted(fmt.Errorf("interrupted: run %s can be resumed: %s", id, l.Hint(f.State.Namespace, "resume", "run", f.State.Name)))
	case driven != nil:
		return nil, fmt.Errorf("driving run %s: %w", id, driven)
	case err != nil:
		return nil, err
	}
	return r, finish(l.Kit, r, format)
}

func (d *deps) trustVar(f *pflag.FlagSet) {
	f.BoolVar(&d.trust, "trust-folder", false, "Drive runs of a folder that was not created by this user, on this machine, at this path. Local runs")
}

// confirmTrust asks for confirmation if this user has not created the folder on this machine,
// because the runs in the folder execute with the user's permissions. The list of known folders is
// kept in a file outside of the folder, because the creator of a folder can write anything into it.
func (d *deps) confirmTrust(ctx context.Context, log *connect.Log) error {
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(d.Flags.Dir)
	if err != nil {
		return err
	}
	config, err := os.UserConfigDir()
	file, line := filepath.Join(config, "scute", "folders"), log.ID()+" "+dir
	var known []byte
	if err == nil {
		if known, err = os.ReadFile(file); errors.Is(err, os.ErrNotExist) { //nolint:gosec // the user's own
			err = nil
		}
	}
	if slices.Contains(strings.Split(string(known), "\n"), line) {
		return nil
	}
	if head > 0 && !d.trust {
		d.Env.Notef("The log in %s was not created by this user, on this machine, at this path. Its runs execute the commands that are stored in it, with your permissions. Review them first: %s",
			dir, d.Env.Hint("get", "runs", "--log", d.Flags.Dir))
		if err := d.Confirm("--trust-folder", "Drive its runs?", "drive its runs"); err != nil {
			return err
		}
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, append(known, line+"\n"...), 0o600)
	}
	if err != nil {
		d.Env.Notef("The folder could not be remembered as yours, so you will be asked again: %v", err)
	}
	return nil
}
