package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/moves"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

type abortOptions struct {
	*Deps
	Name    string
	Reason  string
	Wait    bool
	Timeout time.Duration
}

func newCmdAbort(d *Deps) *cobra.Command {
	o := &abortOptions{Deps: d}
	cmd := &cobra.Command{
		Use:   "abort NAME",
		Short: "Roll a move back, as long as that is possible",
		Long: `Roll a move back: the copies on the target are removed, the source is as it was found. That is possible until the
move is Verified; from there it only goes forward.

The decision is written to the event log, with you as its author and your reason. Where the log cannot be reached,
spec.abort of the Move is set instead, and the reason is not kept.`,
		Example: "  " + d.Env.Name + " move abort prod --reason 'wrong target'",
		Args:    oneName("a move"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cli.ReasonVar(cmd.Flags(), &o.Reason)
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "Wait for the daemon's answer")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 30*time.Second, "How long to wait for it")
	return cmd
}

func (o *abortOptions) run(ctx context.Context) error {
	if o.Timeout <= 0 {
		return cli.Usagef("--timeout is %s: it must be more than nothing", o.Timeout)
	}
	source, cluster, log, err := o.open(ctx)
	if err != nil {
		return err
	}
	if log != nil {
		defer log.Close()
	}
	key := o.key(cluster, o.Name)
	m, err := source.Get(ctx, key)
	if err != nil {
		return err
	}
	key.Namespace = m.Namespace
	if settled, err := o.tooLate(m); settled {
		return err
	}
	if err := o.ask(ctx, m, cluster, log); err != nil {
		return err
	}
	if log != nil && log.Static {
		o.Env.Notef("The log is a stopped daemon's: the move is rolled back when a daemon runs on it again.")
		return nil
	}
	if !o.Wait {
		return nil
	}
	return o.answer(ctx, source, m)
}

// tooLate says whether there is nothing to ask for any more, and what that means for the exit status.
func (o *abortOptions) tooLate(m *v1alpha1.Move) (settled bool, err error) {
	name := m.Namespace + "/" + m.Name
	switch {
	case m.Status.Phase == mover.PhaseRolledBack, m.Status.Phase == mover.PhaseRollingBack:
		o.Env.Notef("Move %s: %s", name, m.Status.Message)
		return true, nil
	case m.Status.Phase == mover.PhaseFailed && m.Status.FinishedAt != nil:
		o.Env.Notef("Move %s needs no abort: %s", name, m.Status.Message)
		return true, nil
	case m.Status.Phase == mover.PhaseSucceeded && m.Spec.DryRun:
		return true, fmt.Errorf("move %s has ended: %s", name, m.Status.Message)
	case m.Status.Phase == mover.PhaseSucceeded:
		return true, fmt.Errorf("move %s has ended: %s. To have its clusters back, move them from the target to here", name, m.Status.Message)
	case moves.PastReturn(m):
		return true, fmt.Errorf("move %s is past its point of no return: %s. From Verified on the target holds everything and the source is being emptied: "+
			"it only goes forward; follow it with `%s move watch %s -n %s`", name, m.Status.Message, o.Env.Name, m.Name, m.Namespace)
	default:
		return false, nil
	}
}

// ask writes the decision down: in the log, or, where that cannot be reached, in the resource.
func (o *abortOptions) ask(ctx context.Context, m *v1alpha1.Move, cluster *reach.Cluster, log *reach.Log) error {
	if log == nil && m.Status.MoveID != "" {
		var err error
		if log, err = o.Flags.Log(ctx, o.Env.Err); err != nil {
			o.Env.Notef("The log could not be reached, so spec.abort is set instead: %v", err)
			log = nil
		} else {
			defer log.Close()
		}
	}
	name := m.Namespace + "/" + m.Name
	if log == nil {
		if err := o.patch(ctx, m, cluster); err != nil {
			return err
		}
		fmt.Fprintf(o.Env.Out, "move %s: abort asked for in spec.abort\n", name)
		if o.Reason != "" {
			o.Env.Notef("The reason is not kept: a Move has no place for it.")
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	actor := reach.Actor(ctx, cluster)
	err := (&runner.Runner{Log: log.Log, Now: o.Env.Now}).Abort(ctx, m.Status.MoveID, actor, o.Reason)
	if err != nil {
		return fmt.Errorf("writing the abort of move %s to the log at %s: %w", name, log.Where, err)
	}
	fmt.Fprintf(o.Env.Out, "move %s: abort recorded by %s\n", name, actor)
	return nil
}

func (o *abortOptions) patch(ctx context.Context, m *v1alpha1.Move, cluster *reach.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	after := m.DeepCopy()
	after.Spec.Abort = true
	if err := cluster.Client.Patch(ctx, after, client.MergeFrom(m)); err != nil {
		return fmt.Errorf("setting spec.abort of move %s/%s: %w", m.Namespace, m.Name, cluster.Explain(err))
	}
	return nil
}

// answer waits until the move has turned back, or has passed the point from which it cannot.
func (o *abortOptions) answer(ctx context.Context, source moves.Source, m *v1alpha1.Move) error {
	waiting, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var last *v1alpha1.Move
	err := source.Watch(waiting, clientKey(m), func(now *v1alpha1.Move) bool {
		last = now
		return now.Status.Phase == mover.PhaseRollingBack || now.Status.FinishedAt != nil || moves.PastReturn(now)
	})
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: the abort stands"))
	case waiting.Err() != nil:
		return fmt.Errorf("no daemon has acted on the abort within %s; it stands: `%s doctor` says whether one runs", o.Timeout, o.Env.Name)
	case err != nil:
		return err
	}
	if moves.PastReturn(last) {
		_, err := o.tooLate(last)
		return fmt.Errorf("the abort came too late: %w", err)
	}
	fmt.Fprintf(o.Env.Out, "move %s/%s: %s\n", m.Namespace, m.Name, last.Status.Message)
	return nil
}
