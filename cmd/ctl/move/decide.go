package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// abandon is the decision that the target is lost.
const abandon = "abandon"

func actions() []string { return []string{string(mover.Forward), string(mover.Back), abandon} }

type decideOptions struct {
	*kit.Kit
	noun           *noun
	Action, Reason string
}

func newCmdDecide(env *cli.Env, n *noun) *cobra.Command {
	o := &decideOptions{noun: n}
	cmd := &cobra.Command{
		Use:   " --action ACTION --reason WHY",
		Short: "Decide how a stranded move continues, or that its target is gone for good",
		Long: `Decide about a move that scute cannot continue by itself.

  forward   empty the source and resume the target
  back      remove the copies from the target and resume the source
  abandon   the target is gone for good: end the move

forward and back are for a stranded move: its event log was lost or went back, or its clusters contradict the log.
"describe" shows which of the two is safe. scute first checks both clusters again, and changes nothing if the choice is not safe.

abandon resumes the source if it still has everything. If objects of the source were already deleted, it stays paused. The
target may have copies that the move created. If the target comes back, remove the finalizers of these copies and delete
them, and do not unpause them: both clusters would act on the same machines.

The decision is written to the event log, with your name and your reason. If the log cannot be reached, abandon sets
spec.abandonTarget of the Move instead, and the reason is not recorded.`,
		Example: kit.Examples(env, "$ decide move prod -n fleet --action forward --reason 'the log volume is lost'",
			"$ decide move prod -n fleet --action abandon --reason 'the target site is lost'"),
	}
	o.Kit = kit.Command(env, n, cmd, o.run)
	cmd.Flags().StringVar(&o.Action, "action", "", "Decision: "+strings.Join(actions(), ", "))
	cli.ReasonVar(cmd.Flags(), &o.Reason)
	_ = cmd.RegisterFlagCompletionFunc("action", cobra.FixedCompletions(actions(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *decideOptions) run(ctx context.Context, name string) error {
	switch {
	case !slices.Contains(actions(), o.Action):
		return cli.Usagef("--action is %q: it must be one of %s", o.Action, strings.Join(actions(), ", "))
	case o.Reason == "":
		return cli.Usagef("--reason is missing: give the reason; it is recorded in the event log")
	}
	p, err := kit.Open(ctx, o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer p.Close()
	m, err := p.GetWithHint(ctx, p.Key(name))
	if err != nil {
		return err
	}
	switch {
	case m.Status.FinishedAt != nil:
		return fmt.Errorf("move %s has ended: %s", key(m), m.Status.Message)
	case m.Status.MoveID == "":
		return fmt.Errorf("move %s is not in a log yet: %s checks whether a daemon runs", key(m), o.Hint("", "doctor"))
	}
	if err := p.ConnectLogToAppend(ctx); err != nil {
		return o.writeIntent(ctx, p, m, err)
	}
	return o.record(ctx, p, m)
}

func (o *decideOptions) describe() string {
	if o.Action == abandon {
		return "target abandoned"
	}
	return "resolved to go " + o.Action
}

func (o *decideOptions) record(ctx context.Context, p *session, m *v1alpha1.Move) error {
	err := appendDecision(ctx, p, m, o.describe()+",", func(ctx context.Context, r *runner.Runner, actor string) error {
		if o.Action == abandon {
			return r.Abandon(ctx, m.Status.MoveID, actor, o.Reason)
		}
		return r.Resolve(ctx, m.Status.MoveID, actor, mover.Direction(o.Action), o.Reason)
	})
	if errors.Is(err, runner.ErrNotStranded) {
		return fmt.Errorf("move %s is not stranded: %s", key(m), m.Status.Message)
	}
	return err
}

func appendDecision(ctx context.Context, p *session, m *v1alpha1.Move, what string, fn func(_ context.Context, _ *runner.Runner, actor string) error) error {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	actor := connect.Actor(ctx, p.Cluster)
	if err := fn(ctx, &runner.Runner{Log: p.Log.Log, Now: p.Env.Now}, actor); err != nil {
		return fmt.Errorf("writing the decision about move %s to the log at %s: %w", key(m), p.Log.Where, err)
	}
	return p.Env.Linef("move %s: %s recorded by %s", key(m), what, actor)
}

// writeIntent writes the decision to the resource. why is the reason why the log cannot be reached.
func (o *decideOptions) writeIntent(ctx context.Context, p *session, m *v1alpha1.Move, why error) error {
	if o.Action != abandon {
		return fmt.Errorf("the log could not be reached, and this decision can be recorded only there: %w", why)
	}
	if err := patch(ctx, p, m, nil, func(s *v1alpha1.MoveSpec) { s.AbandonTarget = true }); err != nil {
		return err
	}
	o.Env.Notef("The log could not be reached, so spec.abandonTarget is set instead, and the reason is not recorded: %v", why)
	return o.Env.Linef("move %s: %s", key(m), o.describe())
}

// patch writes only the changed fields of the spec.
func patch(ctx context.Context, p *session, m *v1alpha1.Move, seen *kit.Seen, change func(*v1alpha1.MoveSpec)) error {
	after := m.DeepCopy()
	change(&after.Spec)
	if err := p.Cluster.Client.Patch(ctx, after, seen.Patch(m)); err != nil {
		return fmt.Errorf("writing the spec of move %s: %w", key(m), p.Cluster.Explain(err))
	}
	return nil
}
