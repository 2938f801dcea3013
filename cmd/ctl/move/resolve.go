package move

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

type resolveOptions struct {
	*Deps
	Name          string
	Forward, Back bool
	Reason        string
}

func newCmdResolve(d *Deps) *cobra.Command {
	o := &resolveOptions{Deps: d}
	cmd := &cobra.Command{
		Use:   "resolve NAME (--forward | --back) --reason TEXT",
		Short: "Decide which way a stranded move goes",
		Long: `Decide which way a stranded move goes: one whose event log was lost or went back, or whose clusters do not hold what the
log says. "describe" says which way is safe. scute reads both clusters again before it goes that way, and changes nothing
if it is not safe.`,
		Example: "  " + d.Env.Name + " move resolve prod --forward --reason 'the log volume is lost'",
		Args:    oneName("a move"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cmd.Flags().BoolVar(&o.Forward, "forward", false, "Empty the source and resume the target")
	cmd.Flags().BoolVar(&o.Back, "back", false, "Remove the copies from the target and resume the source")
	cli.ReasonVar(cmd.Flags(), &o.Reason)
	return cmd
}

func (o *resolveOptions) run(ctx context.Context) error {
	switch {
	case o.Forward == o.Back:
		return cli.Usagef("say which way: either --forward or --back")
	case o.Reason == "":
		return cli.Usagef("--reason is needed: the decision is kept in the log with it")
	}
	way := mover.Forward
	if o.Back {
		way = mover.Back
	}
	return o.record(ctx, o.Name, "resolved to go "+string(way), func(ctx context.Context, r *runner.Runner, id, actor string) error {
		return r.Resolve(ctx, id, actor, way, o.Reason)
	}, nil)
}

type abandonOptions struct {
	*Deps
	Name   string
	Reason string
}

func newCmdAbandon(d *Deps) *cobra.Command {
	o := &abandonOptions{Deps: d}
	cmd := &cobra.Command{
		Use:   "abandon NAME --reason TEXT",
		Short: "End a move whose target is gone for good",
		Long: `End a move whose target is gone for good. If the source still holds everything, it is resumed. If it had begun to be
emptied, it stays paused: what is left there is not all there was.

Copies that the move made may be on the target. Should it come back, delete them there, without their finalizers, and
unpause none of them: both clusters would work on the same machines.

The decision is written to the event log, with you as its author and your reason. Where the log cannot be reached,
spec.abandonTarget of the Move is set instead, and the reason is not kept.`,
		Example: "  " + d.Env.Name + " move abandon prod --reason 'the target site burned down'",
		Args:    oneName("a move"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cli.ReasonVar(cmd.Flags(), &o.Reason)
	return cmd
}

func (o *abandonOptions) run(ctx context.Context) error {
	if o.Reason == "" {
		return cli.Usagef("--reason is needed: the decision is kept in the log with it")
	}
	return o.record(ctx, o.Name, "target abandoned", func(ctx context.Context, r *runner.Runner, id, actor string) error {
		return r.Abandon(ctx, id, actor, o.Reason)
	}, func(m *v1alpha1.Move) { m.Spec.AbandonTarget = true })
}

// record writes a decision to the log. Where the log cannot be reached it goes into the resource, if intent says how.
func (d *Deps) record(ctx context.Context, name, what string, say func(context.Context, *runner.Runner, string, string) error, intent func(*v1alpha1.Move)) error {
	source, cluster, log, err := d.open(ctx)
	if err != nil {
		return err
	}
	if log != nil {
		defer log.Close()
	}
	m, err := source.Get(ctx, d.key(cluster, name))
	if err != nil {
		return err
	}
	full := m.Namespace + "/" + m.Name
	switch {
	case m.Status.FinishedAt != nil:
		return fmt.Errorf("move %s is over: %s", full, m.Status.Message)
	case m.Status.MoveID == "":
		return fmt.Errorf("move %s is not in a log yet: `%s doctor` says whether a daemon runs", full, d.Env.Name)
	}
	if log == nil {
		if log, err = d.Flags.Log(ctx, d.Env.Err); err != nil {
			return d.intend(ctx, m, cluster, what, intent, err)
		}
		defer log.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	actor := reach.Actor(ctx, cluster)
	err = say(ctx, &runner.Runner{Log: log.Log, Now: d.Env.Now}, m.Status.MoveID, actor)
	if errors.Is(err, runner.ErrNotStranded) {
		return fmt.Errorf("move %s is not stranded: %s", full, m.Status.Message)
	}
	if err != nil {
		return fmt.Errorf("writing the decision about move %s to the log at %s: %w", full, log.Where, err)
	}
	_, err = fmt.Fprintf(d.Env.Out, "move %s: %s, recorded by %s\n", full, what, actor)
	return err
}

func (d *Deps) intend(ctx context.Context, m *v1alpha1.Move, cluster *reach.Cluster, what string, intent func(*v1alpha1.Move), why error) error {
	if intent == nil {
		return fmt.Errorf("the log could not be reached, and this decision is kept nowhere else: %w", why)
	}
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	after := m.DeepCopy()
	intent(after)
	if err := cluster.Client.Patch(ctx, after, client.MergeFrom(m)); err != nil {
		return fmt.Errorf("writing the decision into move %s/%s: %w", m.Namespace, m.Name, cluster.Explain(err))
	}
	d.Env.Notef("The log could not be reached, so the decision is in the Move's spec, and the reason is not kept: %v", why)
	_, err := fmt.Fprintf(d.Env.Out, "move %s/%s: %s\n", m.Namespace, m.Name, what)
	return err
}
