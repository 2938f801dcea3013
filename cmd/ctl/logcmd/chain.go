package logcmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
)

type chainOptions struct {
	deps
	Forward bool
	Format  output.Format
}

func newCmdChain(env *cli.Env) *cobra.Command {
	o := &chainOptions{}
	cmd := &cobra.Command{
		Use:   "chain EVENT",
		Short: "Show why an event happened: what it follows from, back to the person or the observation",
		Long: `Show why an event happened: what it follows from, back to the person who asked for it or to what was observed.

EVENT is SEQUENCE/INDEX, for example 17/0 for the first event of commit 17; the sequence of a commit, for all of its events; or the
ID of an event. The beginning of the chain comes first. With --forward, what followed from the event comes after it. An event that
several others follow from has them as branches.`,
		Example: kit.Examples(env, "$ log chain 17", "$ log chain 17/0 --forward", "$ log chain 17 -o json | jq .actor"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("%s needs one event: SEQUENCE/INDEX, the sequence of a commit, or the ID of an event", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().BoolVar(&o.Forward, "forward", false, "Show what followed from the event as well")
	o.Format.AddFlag(cmd, "json")
	return cmd
}

func (o *chainOptions) run(ctx context.Context, event string) error {
	if err := o.Format.Validate(); err != nil {
		return err
	}
	log, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	seq, index, err := o.find(ctx, log, event)
	if err != nil {
		return err
	}
	commit, err := log.At(ctx, seq)
	if errors.Is(err, eventlog.ErrGap) {
		return fmt.Errorf("the log at %s has no commit %d: %s shows where it ends", log.Where, seq, o.Hint("", "log", "status"))
	}
	if err != nil {
		return err
	}
	records, err := log.Read(ctx, commit.Aggregate, 0)
	if err != nil {
		return fmt.Errorf("reading the aggregate of commit %d: %w", seq, err)
	}
	c, words := newChain(), fact.New()
	for _, r := range records {
		c.add(show.Events(words, r))
	}
	if !c.choose(seq, index) {
		return fmt.Errorf("commit %d has no event %d: its events are %d/0 to %d/%d", seq, index, seq, seq, c.length(seq)-1)
	}
	c.back()
	if o.Forward {
		c.forward()
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
	if len(c.events()) == 1 {
		o.Env.Notef("No cause of it is recorded: %s asked for it or observed it, or an earlier version of scute wrote it.", c.events()[0].Actor)
	}
	return nil
}

// all is the index of all events of a commit.
const all = -1

// find gives the place of an event.
func (o *chainOptions) find(ctx context.Context, log *reach.Log, event string) (seq uint64, index int, err error) {
	sequence, at, indexed := strings.Cut(strings.TrimPrefix(event, "#"), "/")
	if seq, err = strconv.ParseUint(sequence, 10, 63); err == nil {
		if !indexed {
			return seq, all, nil
		}
		if index, err = strconv.Atoi(at); err == nil && index >= 0 {
			return seq, index, nil
		}
	}
	_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		events, err := r.Events()
		if err != nil {
			return nil //nolint:nilerr // what cannot be read has no event of that ID
		}
		for i, e := range events {
			if e.ID == event {
				seq, index = r.Seq, i
				return errFound
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return seq, index, nil
	case err != nil:
		return 0, 0, err
	}
	return 0, 0, fmt.Errorf("the log at %s has no event %s: %s lists all", log.Where, event, o.Hint("", "log", "tail", "--lines", "-1", "-o", "json"))
}

// errFound ends a replay.
var errFound = errors.New("found")
