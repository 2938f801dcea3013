package logcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type chainOptions struct {
	deps
	Forward bool
	Format  cli.Format
}

func newCmdChain(env *cli.Env) *cobra.Command {
	o := &chainOptions{}
	cmd := &cobra.Command{
		Use:   "chain EVENT",
		Short: "Show why an event happened: its causes, back to a request or an observation",
		Long: `Show why an event happened: its causes, back to the request of a person or to an observation.

` + eventArgument + ` The first cause is shown first. With --forward, the events that this event caused are shown after it. An event
that caused several others shows them as branches.`,
		Example: kit.Examples(env, "$ log chain 17", "$ log chain 17/0 --forward", "$ log chain 17 -o json | jq .actor"),
		Args:    oneEvent,
		RunE:    o.withEvent(o.run),
	}
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().BoolVar(&o.Forward, "forward", false, "Also show the events that this event caused")
	o.Format.AddFlag(cmd, "json")
	return cmd
}

func (o *chainOptions) run(ctx context.Context, log *connect.Log, commit eventlog.Record, index int) error {
	records, err := log.Read(ctx, commit.Aggregate, 0)
	if err != nil {
		return fmt.Errorf("reading the aggregate of commit %d: %w", commit.Seq, err)
	}
	c, every, subjects := newChain(), &kit.Filter{}, kit.NewSubjects()
	for _, r := range records {
		c.add(every.Select(kit.Events(r), subjects))
	}
	if !c.choose(commit.Seq, index) {
		return noSuchEvent(commit.Seq, index, c.length(commit.Seq))
	}
	c.showCauses()
	if o.Forward {
		c.showEffects()
	}
	return o.write(c, commit.Aggregate)
}

func (o *chainOptions) write(c *chain, a eventlog.Aggregate) error {
	if o.Format.Data() {
		return o.WriteEvents(c.events(), &o.Format)
	}
	v := o.View()
	if err := o.Print(append([]string{"Aggregate     " + a.String(), ""}, c.lines(v)...)); err != nil {
		return err
	}
	lost := c.missingCauses()
	for _, l := range lost[:min(len(lost), maxMissing)] {
		o.Env.Notef("Event %d/%d was caused by event %q, which is missing from the log or cannot be read: %s shows what is wrong.", l.Seq, l.index, l.Causation, o.Hint("", "log", "replay"))
	}
	if len(c.events()) == 1 && len(lost) == 0 {
		o.Env.Notef("This event has no recorded cause: %s requested or observed it, or an earlier version of scute wrote it.", kit.Actor(c.events()[0].Actor))
	}
	return nil
}

// maxMissing is how many missing causes are listed.
const maxMissing = 10
