package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/runs"
	"scute.dev/cmd/ctl/source"
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
	draw := d.changes(format)
	seen := make(chan *runs.Run)
	taken := make(chan struct{})
	ended := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		ended <- at.source.Watch(watching, key, func(r *runs.Run) bool {
			rests := r.Rests()
			select {
			case seen <- r: // it is the source's own until it is taken
				<-taken
			case <-watching.Done():
				return true
			}
			return rests
		})
		close(ended)
	}()
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	var last *runs.Run
	for {
		select {
		case r := <-seen:
			copied := *r
			last = &copied
			err := draw.change(last)
			taken <- struct{}{}
			if err != nil {
				stop()
				for range ended { // until the watch has ended, in whatever way
				}
				return err
			}
		case <-clock.C:
			if last != nil {
				draw.tick(last)
			}
		case err := <-ended:
			return d.watched(ctx, at, key, last, err, format)
		}
	}
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
