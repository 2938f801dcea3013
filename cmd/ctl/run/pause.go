package run

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/workflow"
)

func newCmdPause(env *cli.Env, n *noun) *cobra.Command {
	o := &deps{noun: n}
	cmd := o.command(env, &cobra.Command{
		Short: "Pause a run, or hold one of its tasks",
		Long: `Pause a run: no further task starts, running tasks end, and the clocks of the run stop. With --task only this task is held,
and the tasks that need it wait. It must not have started. All other tasks continue.

The pause is an event in the log, with your name and your reason.`,
		Example: kit.Examples(env, "$ pause run upgrade-prod --reason 'maintenance of the network'", "$ pause run upgrade-prod --task upgrade-cluster"),
	}, func(ctx context.Context, name string) error { return o.withRun(ctx, name, o.pause) })
	kit.TaskVar(cmd, o.Kit, n, &o.Task, "Hold this task, instead of the run")
	cli.ReasonVar(cmd.Flags(), &o.Reason)
	return cmd
}

func (d *deps) pause(ctx context.Context, at *session, f *Fold) error {
	if d.Task != "" {
		return d.record(ctx, at, f, workflow.HoldTask{Task: d.Task, Reason: d.Reason}, "task "+d.Task+" held")
	}
	return d.record(ctx, at, f, workflow.PauseRun{Reason: d.Reason}, "paused")
}

type resumeOptions struct {
	*deps
	Parallel int
	Wait     bool
	Format   cli.Format
}

func newCmdResume(env *cli.Env, n *noun, options Options) *cobra.Command {
	o := &resumeOptions{deps: &deps{noun: n, Options: options}}
	cmd := o.command(env, &cobra.Command{
		Short: "Continue a run, or release one of its tasks",
		Long: `Continue a run that was paused, aborted, or interrupted. Finished tasks are skipped; aborted and interrupted tasks are tried
again. A task that waits for a decision keeps waiting: see decide. With --task a held task is released.

The daemon drives a run in a cluster, and this command follows it with --wait. This command drives a local run until it ends or
waits for an operator, as scutectl run does. Right after a decision it only acts on the decision, and tries no other task again.

The resumption is an event in the log, with your name and your reason. The exit status is that of scutectl run, if the run is
followed.`,
		Example: kit.Examples(env, "$ resume run create-prod --local", "$ resume run upgrade-prod -n fleet --wait"),
	}, o.run)
	f := cmd.Flags()
	kit.TaskVar(cmd, o.Kit, n, &o.Task, "Release this task, instead of resuming the run")
	cli.ReasonVar(f, &o.Reason)
	o.trustVar(f)
	f.IntVar(&o.Parallel, "parallel", 0, "How many tasks may run at once; 16 if not set. Local runs")
	f.BoolVar(&o.Wait, "wait", false, "Follow the run until it ends or waits for an operator. Runs in a cluster")
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *resumeOptions) run(ctx context.Context, name string) error {
	if o.Parallel < 0 {
		return cli.Usagef("--parallel is %d: it must be greater than zero", o.Parallel)
	}
	return o.withRun(ctx, name, o.resumeRun)
}

func (o *resumeOptions) resumeRun(ctx context.Context, at *session, f *Fold) error {
	if o.Task != "" {
		actor, err := o.submit(ctx, at, f, workflow.ReleaseTask{Task: o.Task, Reason: o.Reason})
		if err != nil {
			return err
		}
		o.Env.Notef("run %s: task %s released by %s", f.ID, o.Task, actor)
	}
	if at.Log.Static {
		_, err := o.driveLocal(ctx, at, f, &o.Format, o.Parallel, func(ctx context.Context, l *local, f *Fold) error {
			return l.resume(ctx, f, o.Reason)
		})
		return err
	}
	if o.Task == "" {
		if err := o.resume(ctx, at, f); err != nil {
			return err
		}
	}
	if !o.Wait {
		o.noteUnseen(ctx, at, f)
		return nil
	}
	if err := o.waitShown(ctx, at, f); err != nil {
		return err
	}
	return at.Follow(ctx, key(&f.Run), &o.Format)
}

func (d *deps) resume(ctx context.Context, at *session, f *Fold) error {
	actor, err := d.submit(ctx, at, f, workflow.ResumeRun{Reason: d.Reason})
	if err != nil {
		return err
	}
	d.Env.Notef("run %s: resumed by %s", f.ID, actor)
	return nil
}

// driveLocal drives a run in this process. It closes the folder and opens it again for writing, so
// that other processes can read the log through this process.
func (d *deps) driveLocal(ctx context.Context, at *session, f *Fold, format *cli.Format, parallel int, begin func(context.Context, *local, *Fold) error) (*Run, error) {
	if !d.Flags.Local {
		// The folder may belong to a stopped daemon, whose runs may need kinds or permissions that
		// only the daemon has.
		return nil, cli.Usagef("no process has the log in %s open: add --local if its runs are local runs; to resume the runs of a daemon, start the daemon", at.Log.Where)
	}
	if f.State.Finished() {
		return nil, kit.Refusef("run %s has ended: it is %s; %s starts a new run", f.ID, f.Status.Phase, d.Hint("", "run", "-f", "FILE"))
	}
	at.Close()
	at.Log = nil
	l, err := d.openLocal(ctx, "", parallel)
	if err != nil {
		return nil, err
	}
	defer l.log.Close()
	return l.drive(ctx, f.ID, format, func(ctx context.Context, f *Fold) error { return begin(ctx, l, f) })
}

// Pause pauses the run that the user saw. It fails if the user may not change the WorkflowRun.
func Pause(ctx context.Context, k *kit.Kit, seen *kit.Seen, name, reason string) error {
	o := &deps{noun: newNoun(), Kit: k, Reason: reason}
	return o.withSeen(ctx, seen, name, func(at *session, w *v1alpha1.WorkflowRun, f *Fold) error {
		if w.Spec.Suspend {
			return kit.Refusef("spec.suspend of WorkflowRun %s is set already: no further task starts", f.ID)
		}
		return o.pause(ctx, at, f)
	})
}

// Resume resumes the run that the user saw. It fails if the user may not change the WorkflowRun. If
// spec.suspend is set, Resume only removes it: otherwise the daemon would pause the run again.
func Resume(ctx context.Context, k *kit.Kit, seen *kit.Seen, name, reason string) error {
	o := &deps{noun: newNoun(), Kit: k, Reason: reason}
	return o.withSeen(ctx, seen, name, func(at *session, w *v1alpha1.WorkflowRun, f *Fold) error {
		if !w.Spec.Suspend {
			return o.resume(ctx, at, f)
		}
		before := w.DeepCopy()
		w.Spec.Suspend = false
		if err := at.Cluster.Client.Patch(ctx, w, seen.Patch(before)); err != nil {
			return fmt.Errorf("writing the spec of WorkflowRun %s: %w", f.ID, at.Cluster.Explain(err))
		}
		if o.Reason != "" {
			o.Env.Notef("The reason is not recorded: spec.suspend was set, and a WorkflowRun has no field for a reason.")
		}
		return o.Env.Linef("run %s: spec.suspend is no longer set", f.ID)
	})
}

// withSeen calls fn with the current WorkflowRun of the run that the user saw, and with the run as
// read from the log.
func (d *deps) withSeen(ctx context.Context, seen *kit.Seen, name string, fn func(at *session, w *v1alpha1.WorkflowRun, f *Fold) error) error {
	at, err := kit.InCluster(d.Kit, d.noun)
	if err != nil {
		return err
	}
	defer at.Close()
	tried := &v1alpha1.WorkflowRun{}
	var w *v1alpha1.WorkflowRun
	id := func() string { return tried.Status.RunID }
	err = seen.Permit(ctx, at.Cluster, at.Key(name), tried, id, func() {
		w = tried.DeepCopy()
		tried.Spec.Suspend = !tried.Spec.Suspend
	})
	if err != nil {
		return err
	}
	f, err := foldToAppend(ctx, at, seen.ID)
	if err != nil {
		return err
	}
	return fn(at, w, f)
}
