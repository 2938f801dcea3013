package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/view"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
)

// deps contains the dependencies of a command about one run, and the flags that several commands
// share.
type deps struct {
	*kit.Kit
	noun *noun
	Options
	Task, Reason string
	trust        bool // --trust-folder
}

// command completes a command about one run, and adds the flags that select the cluster or log.
func (d *deps) command(env *cli.Env, cmd *cobra.Command, run func(ctx context.Context, name string) error) *cobra.Command {
	d.Kit = kit.Command(env, d.noun, cmd, run)
	return cmd
}

// withRun reads a run from the log and passes it to fn. It fails if --task is set and the run has
// no such task.
func (d *deps) withRun(ctx context.Context, name string, fn func(ctx context.Context, at *session, f *Fold) error) error {
	at, err := kit.Open(ctx, d.Kit, d.noun)
	if err != nil {
		return err
	}
	defer at.Close()
	f, err := d.fold(ctx, at, at.Key(name))
	if err == nil && d.Task != "" {
		err = hasTask(&f.Run, d.Task)
	}
	if err != nil {
		return err
	}
	return fn(ctx, at, f)
}

func hasTask(r *Run, task string) error {
	tasks := r.Tasks()
	names := make([]string, len(tasks))
	for i := range tasks {
		names[i] = tasks[i].Name
	}
	if slices.Contains(names, task) {
		return nil
	}
	return cli.Usagef("--task: run %s has no task %q%s", key(r), task, cli.Suggest(task, names))
}

func (d *deps) fold(ctx context.Context, at *session, key types.NamespacedName) (*Fold, error) {
	r, err := at.GetWithHint(ctx, key)
	if err != nil {
		return nil, err
	}
	if r.ID == "" {
		return nil, fmt.Errorf("run %s: no daemon has started it yet: %s checks whether one runs", key, d.Hint("", "doctor"))
	}
	return foldToAppend(ctx, at, r.ID)
}

// foldToAppend reads a run from a log to which the command can append a decision.
func foldToAppend(ctx context.Context, at *session, id string) (*Fold, error) {
	if err := at.ConnectLogToAppend(ctx); err != nil {
		return nil, fmt.Errorf("a decision is written to the log, which could not be reached: %w", err)
	}
	f, err := fold(ctx, at.Log, id)
	if err != nil {
		return nil, err
	}
	if !f.State.IsDefined() {
		return nil, fmt.Errorf("the log at %s does not have run %s, or has only part of its definition", at.Log.Where, id)
	}
	f.Refresh()
	return f, nil
}

// submit writes a command to the log, and returns the actor. If the log rejects the command, the
// error is a RefusedError; if the connection fails, it is not.
func (d *deps) submit(ctx context.Context, at *session, f *Fold, in workflow.Input) (actor string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	actor = connect.Actor(ctx, at.Cluster)
	if needsAdoption(in) && !at.Log.Static && !d.Flags.Local { // a local run has no WorkflowRun
		err = d.change(ctx, at, f, actor, in)
	} else {
		err = (&runner.Runner{Log: at.Log.Log, Now: d.Env.Now}).Command(ctx, f.ID, actor, in)
	}
	if errors.Is(err, eventlog.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return actor, fmt.Errorf("run %s: writing to the log at %s: %w", f.ID, at.Log.Where, err)
	}
	if err != nil {
		return actor, kit.Refusef("run %s: %w", f.ID, err)
	}
	return actor, nil
}

// record submits an operator's command, and prints what was recorded and by whom. It then waits
// until the WorkflowRun shows the decision, so that the next command of scutectl shows it too. If
// that fails, record only prints a note, because the decision is recorded.
func (d *deps) record(ctx context.Context, at *session, f *Fold, in workflow.Input, what string) error {
	actor, err := d.submit(ctx, at, f, in)
	if err != nil {
		return err
	}
	if err := d.Env.Linef("run %s: %s by %s", f.ID, what, actor); err != nil {
		return err
	}
	d.noteUnseen(ctx, at, f)
	return nil
}

// noteUnseen waits until the WorkflowRun shows the decision. It prints a note if that fails, or if
// no process drives the run.
func (d *deps) noteUnseen(ctx context.Context, at *session, f *Fold) {
	if at.Log.Static {
		d.Env.Notef("No process drives the run now. To continue it: %s", d.Hint(f.Namespace, "resume", "run", f.Name))
	} else if err := d.waitShown(ctx, at, f); err != nil {
		d.Env.Notef("The WorkflowRun does not show it yet: %s", err)
	}
}

// waitShown waits until the status of the WorkflowRun is as new as the log.
func (d *deps) waitShown(ctx context.Context, at *session, f *Fold) error {
	if at.Cluster == nil {
		return nil
	}
	f, err := fold(ctx, at.Log, f.ID)
	if err != nil {
		return err
	}
	f.Refresh()
	waiting, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	err = at.Watch(waiting, types.NamespacedName{Namespace: f.Namespace, Name: f.Name}, func(now *Run) bool {
		return now.Status.LogSequence >= f.Status.LogSequence
	})
	if waiting.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it is recorded, but no daemon has acted on it within %s: %s checks whether one runs", view.Duration(connect.CallTimeout), d.Hint("", "doctor"))
	}
	return err
}

func (d *deps) requireReason() error {
	if d.Reason == "" {
		return cli.Usagef("--reason is missing: give the reason; it is recorded in the event log")
	}
	return nil
}

// needsAdoption reports whether a command changes what a run does with its permissions. The daemon
// does not act on such a change until the WorkflowRun adopts it.
func needsAdoption(in workflow.Input) bool {
	switch in := in.(type) {
	case workflow.Migrate:
		return true
	case workflow.Decision:
		return in.With != nil || in.Output != nil
	default:
		return false
	}
}

// change records a command that needs adoption, and adopts it in the WorkflowRun. The API server
// decides whether the user may adopt it.
func (d *deps) change(ctx context.Context, at *session, f *Fold, actor string, in workflow.Input) error {
	permit := func(string) error { return nil }
	if at.Cluster != nil {
		var w v1alpha1.WorkflowRun
		if err := at.Cluster.Client.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: f.Name}, &w); err != nil {
			return at.Cluster.Explain(err)
		}
		if id, _, err := w.LogID(); err != nil || id != f.ID {
			return fmt.Errorf("the WorkflowRun %s/%s belongs to run %s, and not to this run", w.Namespace, w.Name, id)
		}
		if err := adopt(ctx, at.Cluster, &w, w.Annotations[v1alpha1.AdoptedAnnotation], client.DryRunAll); err != nil {
			return err
		}
		permit = func(digest string) error {
			if digest != w.Annotations[v1alpha1.AdoptedAnnotation] {
				return fmt.Errorf("a client has changed the run in the log, and its WorkflowRun has not adopted the change: review the change (%s), and adopt it first: %s",
					d.Hint("", "log", "tail", "--aggregate", "run/"+f.ID), runner.AdoptCommand(f.Namespace, f.Name, digest))
			}
			return nil
		}
	}
	digest, err := (&runner.Runner{Log: at.Log.Log, Now: d.Env.Now}).Change(ctx, f.ID, actor, in, permit)
	if err != nil {
		return err
	}
	if at.Cluster == nil {
		d.Env.Notef("The daemon continues when the WorkflowRun adopts this: %s", runner.AdoptCommand(f.Namespace, f.Name, digest))
		return nil
	}
	w := v1alpha1.WorkflowRun{}
	w.Namespace, w.Name = f.Namespace, f.Name
	if err := adopt(ctx, at.Cluster, &w, digest); err != nil {
		return fmt.Errorf("the change is recorded, and the daemon waits for its adoption: %w: %s", err, runner.AdoptCommand(f.Namespace, f.Name, digest))
	}
	return nil
}

func adopt(ctx context.Context, cluster *connect.Cluster, w *v1alpha1.WorkflowRun, digest string, options ...client.PatchOption) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AdoptedAnnotation, digest)
	if err := cluster.Client.Patch(ctx, w.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), options...); err != nil {
		return fmt.Errorf("writing metadata.annotations[%s] of WorkflowRun %s/%s: %w", v1alpha1.AdoptedAnnotation, w.Namespace, w.Name, cluster.Explain(err))
	}
	return nil
}
