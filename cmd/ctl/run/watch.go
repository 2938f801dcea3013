package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/runs"
	"scute.dev/cmd/ctl/source"
	"scute.dev/cmd/ctl/watch"
)

type watchOptions struct {
	*deps
	Name   string
	Format output.Format
}

func newCmdWatch(env *cli.Env, options Options) *cobra.Command {
	o := &watchOptions{}
	cmd := &cobra.Command{
		Use:     "run NAME",
		Aliases: aliases(),
		Short:   "Follow a run until it rests",
		Long: `Follow a run until it rests. On a terminal it is redrawn in place; in a pipe each change is a line.

The exit status is that of scutectl run: 0 Succeeded, 1 failed, 3 Paused, 4 Degraded, 130 interrupted (the run goes on).`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
	}
	o.deps = newDeps(env, cmd, options)
	cmd.ValidArgsFunction = o.complete
	o.Format.AddFlag(cmd.Flags(), "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *watchOptions) run(ctx context.Context) error {
	if err := o.Format.Validate(); err != nil {
		return err
	}
	at, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	return o.watch(ctx, at, o.key(at, o.Name), o.Format)
}

// watch follows a run that another process drives to where it rests, and makes an exit status of it.
func (d *deps) watch(ctx context.Context, at *opened, key types.NamespacedName, format output.Format) error {
	last, _, err := watch.Until(ctx, func(ctx context.Context, fn func(*runs.Run) bool) error {
		return at.source.Watch(ctx, key, func(r *runs.Run) bool {
			copied := *r // it is the source's own, and changes
			return fn(&copied)
		})
	}, (*runs.Run).Rests, d.changes(format))
	return d.watched(ctx, at, key, last, err, format)
}

func (d *deps) watched(ctx context.Context, at *opened, key types.NamespacedName, r *runs.Run, err error, format output.Format) error {
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(fmt.Errorf("interrupted: the run goes on without being watched; see %s", d.hint(key.Namespace, "watch", "run", key.Name)))
	case errors.Is(err, source.ErrStill):
		return fmt.Errorf("%w; to go on with it: %s", err, d.hint(key.Namespace, "resume", "run", key.Name))
	case err != nil || r == nil:
		return err
	}
	if format.Value != "" {
		r = d.whole(ctx, at, r)
	}
	return d.finish(r, format)
}
