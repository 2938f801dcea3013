package run

import (
	"context"

	"github.com/spf13/cobra"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/workflow"
)

type abortOptions struct {
	*deps
	Command workflow.AbortRun
}

func newCmdAbort(env *cli.Env, n *noun, options Options) *cobra.Command {
	o := &abortOptions{deps: &deps{noun: n, Options: options}}
	cmd := o.command(env, &cobra.Command{
		Use:   " --reason WHY",
		Short: "Abort a run, and roll it back if asked to",
		Long: `Abort a run that has not ended, also one that is paused or waits for a decision: no further task starts, running tasks are
cancelled, and what the run holds, such as pauses, is released. Finished tasks are not undone, and the run can be resumed.

With --rollback finished tasks are undone too. An aborted run can still be rolled back. A run that has passed a point of no return
cannot.

The abort is an event in the log, with your name and your reason. The daemon aborts a run in a cluster, and this command a local
run. The exit status is 0 when a local run is Aborted or RolledBack, or when the abort of a run in a cluster is recorded.`,
		Example: kit.Examples(env, "$ abort run upgrade-prod -n fleet --reason 'wrong version'", "$ abort run create-prod --local --rollback --reason 'not needed any more'"),
	}, o.run)
	f := cmd.Flags()
	f.BoolVar(&o.Command.Rollback, "rollback", false, "Undo what the run did")
	cli.ReasonVar(f, &o.Command.Reason)
	o.trustVar(f)
	return cmd
}

func (o *abortOptions) run(ctx context.Context, name string) error {
	if err := requireReason(o.Command.Reason); err != nil {
		return err
	}
	return o.withRun(ctx, name, "", o.abort)
}

func (o *abortOptions) abort(ctx context.Context, at *session, f *Fold) error {
	switch phase := f.Status.Phase; {
	case f.State.Finished():
		return kit.Refusef("run %s has ended: it is %s", f.ID, phase)
	case phase == v1alpha1.RunAborted && !o.Command.Rollback:
		return kit.Refusef("run %s is already Aborted: --rollback undoes what it did", f.ID)
	case phase == v1alpha1.RunRollingBack && at.Log.Static && o.Command.Rollback: // nobody drives it: it continues here
	case phase == v1alpha1.RunRollingBack && at.Log.Static:
		return kit.Refusef("run %s is already %s, and no process drives it now: to continue the rollback: %s", f.ID, phase, o.Hint(f.Namespace, "resume", "run", f.Name))
	case phase == v1alpha1.RunRollingBack || phase == v1alpha1.RunRollbackFailed:
		return kit.Refusef("run %s is already %s: %s shows how far it is", f.ID, phase, o.Hint(f.Namespace, "describe", "run", f.Name))
	case f.State.Stopping() && !o.Command.Rollback && !at.Log.Static:
		return kit.Refusef("run %s is already being aborted: %s shows how far it is", f.ID, o.Hint(f.Namespace, "describe", "run", f.Name))
	}
	if at.Log.Static {
		r, err := o.driveLocal(ctx, at, f, &cli.Format{}, 0, func(ctx context.Context, l *local, f *Fold) error {
			return l.runner.Command(ctx, f.ID, connect.Actor(ctx, nil), o.Command)
		})
		if r != nil && (r.Phase() == v1alpha1.RunAborted || r.Phase() == v1alpha1.RunRolledBack) {
			return nil
		}
		return err
	}
	what := "abort recorded"
	if o.Command.Rollback {
		what = "rollback recorded"
	}
	if err := o.record(ctx, at, f, o.Command, what); err != nil {
		return err
	}
	o.syncResource(ctx, at, f)
	return nil
}
