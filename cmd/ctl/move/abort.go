package move

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

type abortOptions struct {
	*kit.Kit
	noun   *noun
	Reason string
	Wait   kit.Wait
	seen   *kit.Seen
}

func newCmdAbort(env *cli.Env, n *noun) *cobra.Command {
	o := &abortOptions{noun: n}
	cmd := &cobra.Command{
		Short: "Roll back a move, while this is possible",
		Long: `Roll back a move: delete the copies on the target and restore the source. This is possible until the move is Verified;
from then on it can only complete.

The decision is written to the event log, with your name and your reason. If the log cannot be reached, spec.abort of the
Move is set instead, and the reason is not recorded.`,
		Example: kit.Examples(env, "$ abort move prod -n fleet --reason 'wrong target'"),
	}
	o.Kit = kit.Command(env, n, cmd, o.run)
	cli.ReasonVar(cmd.Flags(), &o.Reason)
	o.Wait.AddFlags(cmd.Flags(), 30*time.Second, "for the daemon's answer")
	return cmd
}

func (o *abortOptions) run(ctx context.Context, name string) error {
	if err := o.Wait.Validate(); err != nil {
		return err
	}
	p, err := kit.Open(ctx, o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer p.Close()
	return o.abortIn(ctx, p, p.Key(name))
}

// Abort aborts the Move that the user saw, as `abort move` does, but without waiting. It fails if
// the user may not change the Move.
func Abort(ctx context.Context, k *kit.Kit, seen *kit.Seen, name, reason string) error {
	o := &abortOptions{Kit: k, noun: newNoun(), Reason: reason, seen: seen}
	p, err := kit.InCluster(k, o.noun)
	if err != nil {
		return err
	}
	defer p.Close()
	m := &v1alpha1.Move{}
	at, id := p.Key(name), func() string { return m.Status.MoveID }
	if err := seen.Permit(ctx, p.Cluster, at, m, id, func() { m.Spec.Abort = !m.Spec.Abort }); err != nil {
		return err
	}
	return o.abortIn(ctx, p, at)
}

func (o *abortOptions) abortIn(ctx context.Context, p *session, at types.NamespacedName) error {
	m, err := p.GetWithHint(ctx, at)
	if err != nil {
		return err
	}
	if err := o.seen.Check(m, m.Status.MoveID); err != nil {
		return err
	}
	if settled, err := o.checkPhase(m); settled {
		return err
	}
	if err := o.request(ctx, p, m); err != nil {
		return err
	}
	if p.Log != nil && p.Log.Static {
		o.Env.Notef("This is the log of a stopped daemon: the move is rolled back when a daemon uses the log again.")
		return nil
	}
	if !o.Wait.Wait {
		return nil
	}
	return o.awaitAnswer(ctx, p, m)
}

// checkPhase reports whether an abort is unnecessary or impossible in the present phase (settled).
// In that case err is the result of the command.
func (o *abortOptions) checkPhase(m *v1alpha1.Move) (settled bool, err error) {
	switch {
	case m.Status.Phase == mover.PhaseRolledBack, m.Status.Phase == mover.PhaseRollingBack:
		o.Env.Notef("Move %s: %s", key(m), m.Status.Message)
		return true, nil
	case m.Status.Phase == mover.PhaseFailed && m.Status.FinishedAt != nil:
		o.Env.Notef("Move %s needs no abort: %s", key(m), m.Status.Message)
		return true, nil
	case m.Status.Phase == mover.PhaseSucceeded && m.Spec.DryRun:
		return true, kit.Refusef("move %s has ended: %s", key(m), m.Status.Message)
	case m.Status.Phase == mover.PhaseSucceeded:
		return true, kit.Refusef("move %s has ended: %s. To get its clusters back, move them from the target to this management cluster", key(m), m.Status.Message)
	case pastPointOfNoReturn(m):
		return true, kit.Refusef("move %s is past its point of no return: %s. From Verified on, the target has everything and the source is being deleted: "+
			"the move can only complete; follow it with %s", key(m), m.Status.Message, o.Hint(m.Namespace, "watch", "move", m.Name))
	default:
		return false, nil
	}
}

// request records the decision in the log. If the log cannot be reached, it records the decision in
// the resource.
func (o *abortOptions) request(ctx context.Context, p *session, m *v1alpha1.Move) error {
	var unreached error
	if m.Status.MoveID != "" {
		unreached = p.ConnectLogToAppend(ctx)
	}
	if p.Log == nil {
		if unreached != nil {
			o.Env.Notef("The log could not be reached, so spec.abort is set instead: %v", unreached)
		}
		if err := patch(ctx, p, m, o.seen, func(s *v1alpha1.MoveSpec) { s.Abort = true }); err != nil {
			return err
		}
		if o.Reason != "" {
			o.Env.Notef("The reason is not recorded: a Move has no field for it.")
		}
		return o.Env.Linef("move %s: abort requested in spec.abort", key(m))
	}
	return appendDecision(ctx, p, m, "abort", func(ctx context.Context, r *runner.Runner, actor string) error {
		return r.Abort(ctx, m.Status.MoveID, actor, o.Reason)
	})
}

// awaitAnswer waits until the move rolls back, or has passed its point of no return.
func (o *abortOptions) awaitAnswer(ctx context.Context, p *session, m *v1alpha1.Move) error {
	var last *v1alpha1.Move
	err := p.Await(ctx, key(m), o.Wait.Timeout, "the abort is recorded", func(now *v1alpha1.Move) bool {
		last = now
		return now.Status.Phase == mover.PhaseRollingBack || now.Status.FinishedAt != nil || pastPointOfNoReturn(now)
	})
	if err != nil {
		return err
	}
	if pastPointOfNoReturn(last) {
		_, err := o.checkPhase(last)
		return kit.Refusef("the abort came too late: %w", err)
	}
	return o.Env.Linef("move %s: %s", key(m), last.Status.Message)
}
