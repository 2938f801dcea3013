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

func newCmdAbort(env *cli.Env, n *noun, options Options) *cobra.Command {
	o, rollback := &deps{noun: n, Options: options}, false
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
	}, func(ctx context.Context, name string) error {
		if err := o.requireReason(); err != nil {
			return err
		}
		return o.withRun(ctx, name, func(ctx context.Context, at *session, f *Fold) error { return o.abort(ctx, at, f, rollback) })
	})
	f := cmd.Flags()
	f.BoolVar(&rollback, "rollback", false, "Undo what the run did")
	cli.ReasonVar(f, &o.Reason)
	o.trustVar(f)
	return cmd
}

func (d *deps) abort(ctx context.Context, at *session, f *Fold, rollback bool) error {
	switch phase := f.Status.Phase; {
	case f.State.Finished():
		return kit.Refusef("run %s has ended: it is %s", f.ID, phase)
	case phase == v1alpha1.RunAborted && !rollback:
		return kit.Refusef("run %s is already Aborted: --rollback undoes what it did", f.ID)
	case phase == v1alpha1.RunRollingBack && at.Log.Static && rollback: // no process drives the run
	case phase == v1alpha1.RunRollingBack && at.Log.Static:
		return kit.Refusef("run %s is already %s, and no process drives it now: to continue the rollback: %s", f.ID, phase, d.Hint(f.Namespace, "resume", "run", f.Name))
	case phase == v1alpha1.RunRollingBack || phase == v1alpha1.RunRollbackFailed || f.State.Stopping() && !rollback && !at.Log.Static:
		return kit.Refusef("run %s is already being aborted, and is %s: %s shows how far it is", f.ID, phase, d.Hint(f.Namespace, "describe", "run", f.Name))
	}
	command := workflow.AbortRun{Rollback: rollback, Reason: d.Reason}
	if at.Log.Static {
		r, err := d.driveLocal(ctx, at, f, &cli.Format{}, 0, func(ctx context.Context, l *local, f *Fold) error {
			return l.runner.Command(ctx, f.ID, connect.Actor(ctx, nil), command)
		})
		if r != nil && (r.Phase() == v1alpha1.RunAborted || r.Phase() == v1alpha1.RunRolledBack) {
			return nil
		}
		return err
	}
	what := "abort recorded"
	if rollback {
		what = "rollback recorded"
	}
	return d.record(ctx, at, f, command, what)
}
