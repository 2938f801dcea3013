package run

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/output"
	"scute.dev/workflow"
)

type pauseOptions struct {
	*deps
	Name, Task, Reason string
}

func newCmdPause(env *cli.Env, n *noun) *cobra.Command {
	o := &pauseOptions{deps: &deps{noun: n}}
	cmd := o.command(env, &cobra.Command{
		Short: "Let a run start nothing more, or hold one of its tasks",
		Long: `Let a run start nothing more: what is in flight ends, and its clocks stop. With --task only that task, which must not
have started, is held, and what depends on it waits; the rest continues.

It is an event in the log, with you as its author and your reason.`,
		Example: kit.Examples(env, "$ pause run upgrade-prod --reason 'maintenance of the network'", "$ pause run upgrade-prod --task upgrade-cluster"),
	}, func(ctx context.Context, name string) error {
		o.Name = name
		return o.run(ctx)
	})
	kit.TaskVar(cmd, o.Kit, n, &o.Task, "Hold this task, instead of the run")
	cli.ReasonVar(cmd.Flags(), &o.Reason)
	return cmd
}

func (o *pauseOptions) run(ctx context.Context) error {
	at, f, err := o.ask(ctx, o.Name, o.Task)
	if err != nil {
		return err
	}
	defer at.Close()
	return o.pause(ctx, at, f)
}

func (o *pauseOptions) pause(ctx context.Context, at *place, f *Fold) error {
	var in workflow.Input = workflow.PauseRun{Reason: o.Reason}
	what := "paused"
	if o.Task != "" {
		in, what = workflow.HoldTask{Task: o.Task, Reason: o.Reason}, "task "+o.Task+" held"
	}
	actor, err := o.tell(ctx, at, f, in)
	if err != nil {
		return fmt.Errorf("run %s: %w", f.ID, err)
	}
	if err = o.Env.Linef("run %s: %s by %s", f.ID, what, actor); err != nil {
		return err
	}
	if !at.Log.Static {
		o.afterwards(ctx, at, f)
	}
	return nil
}

type resumeOptions struct {
	pauseOptions
	Parallel int
	Wait     bool
	Format   output.Format
}

func newCmdResume(env *cli.Env, n *noun, options Options) *cobra.Command {
	o := &resumeOptions{pauseOptions: pauseOptions{deps: &deps{noun: n, Options: options}}}
	cmd := o.command(env, &cobra.Command{
		Short: "Continue a run, or release one of its tasks",
		Long: `Continue a run that was paused, aborted, or interrupted: what is done is skipped, what was aborted or cut off is tried
again. A task that waits for a decision keeps waiting: see decide. With --task a task that was held is released.

A run in a cluster is driven by the daemon, and this command follows it with --wait. A local run is driven by this
command, to where it rests, as by scutectl run; right after a decision nothing else is tried again.

It is an event in the log, with you as its author and your reason. The exit status of a run that is followed is that of
scutectl run.`,
		Example: kit.Examples(env, "$ resume run create-prod --local", "$ resume run upgrade-prod -n fleet --wait"),
	}, func(ctx context.Context, name string) error {
		o.Name = name
		return o.run(ctx)
	})
	f := cmd.Flags()
	kit.TaskVar(cmd, o.Kit, n, &o.Task, "Release this task, instead of resuming the run")
	cli.ReasonVar(f, &o.Reason)
	o.trustVar(f)
	f.IntVar(&o.Parallel, "parallel", 0, "How many tasks may be in flight at once; 16 if not given. Local runs")
	f.BoolVar(&o.Wait, "wait", false, "Follow the run to where it rests. Runs in a cluster")
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *resumeOptions) run(ctx context.Context) error {
	if err := o.Format.Validate(); err != nil {
		return err
	}
	if o.Parallel < 0 {
		return cli.Usagef("--parallel is %d: it must be greater than zero", o.Parallel)
	}
	at, f, err := o.ask(ctx, o.Name, o.Task)
	if err != nil {
		return err
	}
	defer at.Close()
	if o.Task != "" {
		actor, err := o.tell(ctx, at, f, workflow.ReleaseTask{Task: o.Task, Reason: o.Reason})
		if err != nil {
			return fmt.Errorf("run %s: %w", f.ID, err)
		}
		o.Env.Notef("run %s: task %s released by %s", f.ID, o.Task, actor)
	}
	if at.Log.Static {
		return o.here(ctx, at, f)
	}
	if o.Task == "" {
		if err := o.resume(ctx, at, f); err != nil {
			return err
		}
	}
	if !o.Wait {
		o.afterwards(ctx, at, f)
		return nil
	}
	if err := o.awake(ctx, at, f); err != nil {
		return err
	}
	return at.Follow(ctx, at.Key(o.Name), &o.Format)
}

// resume lets the daemon continue a run.
func (o *pauseOptions) resume(ctx context.Context, at *place, f *Fold) error {
	actor, err := o.tell(ctx, at, f, workflow.ResumeRun{Reason: o.Reason})
	if err != nil {
		return fmt.Errorf("run %s: %w", f.ID, err)
	}
	o.Env.Notef("run %s: resumed by %s", f.ID, actor)
	return nil
}

// here drives a run of a folder.
func (o *resumeOptions) here(ctx context.Context, at *place, f *Fold) error {
	_, err := o.driveHere(ctx, at, f, &o.Format, o.Parallel, func(ctx context.Context, l *local, f *Fold) error {
		return l.resume(ctx, f, o.Reason)
	})
	return err
}

// driveHere opens the folder of a run again, so that others reach it through this process, and drives the run.
func (d *deps) driveHere(ctx context.Context, at *place, f *Fold, format *output.Format, parallel int, begin func(context.Context, *local, *Fold) error) (*Run, error) {
	if !d.Flags.Local {
		// The folder of a stopped daemon: its runs may need what only the daemon has.
		return nil, cli.Usagef("the log in %s is not open anywhere: if its runs are driven here, add --local; a daemon's are resumed by starting it", at.Log.Where)
	}
	if f.State.Finished() {
		return nil, kit.Refusef("run %s has ended: it is %s; %s begins another one", f.ID, f.Status.Phase, d.Hint("", "run", "-f", "FILE"))
	}
	at.Close()
	at.Log = nil
	l := d.newLocal("", parallel)
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	defer l.log.Close()
	return l.drive(ctx, f.ID, format, func(ctx context.Context, f *Fold) error { return begin(ctx, l, f) })
}
