package move

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
)

type describeOptions struct {
	*Deps
	Name     string
	Timeline bool
}

func newCmdDescribe(d *Deps) *cobra.Command {
	o := &describeOptions{Deps: d}
	cmd := &cobra.Command{
		Use:   "describe NAME",
		Short: "Show where a move stands, what it waits for, and what happened",
		Args:  oneName("a move"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cmd.Flags().BoolVar(&o.Timeline, "timeline", true, "Show the events from the log, if it can be reached")
	return cmd
}

func (o *describeOptions) run(ctx context.Context) error {
	source, cluster, log, err := o.open(ctx)
	if err != nil {
		return err
	}
	if log != nil {
		defer log.Close()
	}
	m, err := source.Get(ctx, o.key(cluster, o.Name))
	if err != nil {
		return err
	}
	if err := o.print(o.view().Describe(m)); err != nil || !o.Timeline || m.Status.MoveID == "" {
		return err
	}
	if log == nil {
		if log, err = o.Flags.Log(ctx, o.Env.Err); err != nil {
			o.Env.Notef("\nThe timeline is left out, because the log could not be reached: %v", err)
			return nil
		}
		defer log.Close()
	}
	return o.timeline(ctx, log, m.Status.MoveID)
}

func (o *describeOptions) timeline(ctx context.Context, log *reach.Log, id string) error {
	aggregate := eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}
	records, err := log.Read(ctx, aggregate, 0)
	if err != nil {
		return fmt.Errorf("reading the timeline from the log at %s: %w", log.Where, err)
	}
	words := fact.New()
	var events []show.Event
	for _, r := range records {
		events = append(events, show.Events(words, r)...)
	}
	lines, left := o.view().Timeline(events)
	if err := o.print(append([]string{"", "Timeline, from the log at " + log.Where + ":"}, lines...)); err != nil {
		return err
	}
	if left > 0 {
		o.Env.Notef("%d earlier rows are left out: `%s log tail --aggregate %s -n -1` shows every event.", left, o.Env.Name, aggregate)
	}
	return nil
}
