package run

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
)

type describeOptions struct {
	*deps
	Name     string
	Timeline bool
}

func newCmdDescribe(env *cli.Env, options Options) *cobra.Command {
	o := &describeOptions{}
	cmd := &cobra.Command{
		Use:     "run NAME",
		Aliases: aliases(),
		Short:   "Show where a run stands, what it waits for, and what happened",
		Args:    oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context())
		},
	}
	o.deps = newDeps(env, cmd, options)
	cmd.ValidArgsFunction = o.complete
	cmd.Flags().BoolVar(&o.Timeline, "timeline", true, "Show the events from the log, if it can be reached")
	return cmd
}

func (o *describeOptions) run(ctx context.Context) error {
	at, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	r, err := at.source.Get(ctx, o.key(at, o.Name))
	if err != nil {
		return err
	}
	r = o.whole(ctx, at, r)
	lines := o.view().DescribeRun(r)
	if next := o.next(r); len(next) > 0 {
		lines = append(lines, "", "To go on:")
		for _, line := range next {
			lines = append(lines, "  "+line)
		}
	}
	if err := o.print(lines); err != nil || !o.Timeline || r.State == nil || at.log == nil {
		return err
	}
	records, err := at.log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: r.ID}, 0)
	if err != nil {
		return fmt.Errorf("reading the timeline from the log at %s: %w", at.log.Where, err)
	}
	words := fact.New()
	var events []show.Event
	for _, record := range records {
		events = append(events, show.Events(words, record)...)
	}
	table, left := o.view().Timeline(events)
	if err := o.print(append([]string{"", "Timeline, from the log at " + at.log.Where + ":"}, table...)); err != nil {
		return err
	}
	if left > 0 {
		o.Env.Notef("%d earlier rows are left out: `%s log tail --aggregate run/%s -n -1` shows every event.", left, o.Env.Name, r.ID)
	}
	return nil
}
