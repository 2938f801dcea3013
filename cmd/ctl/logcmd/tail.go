package logcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
)

type tailOptions struct {
	deps
	Follow    bool
	Aggregate string
	Lines     int
	Since     time.Duration
	Format    output.Format

	of    *eventlog.Aggregate
	words *fact.Words
}

// allLines is the value of --lines that leaves nothing out.
const allLines = -1

func newCmdTail(env *cli.Env) *cobra.Command {
	o := &tailOptions{words: fact.New()}
	cmd := &cobra.Command{
		Use:     "tail",
		Short:   "Show the last events, one a line",
		Example: kit.Examples(env, "$ log tail -f", "$ log tail --since 1h --aggregate move/fleet/prod/1a2b3c4d", "$ log tail --lines -1 -o json | jq .type"),
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Since > 0 && !cmd.Flags().Changed("lines") {
				o.Lines = allLines
			}
			return o.run(cmd.Context())
		},
	}
	o.Kit = kit.New(env, cmd, "")
	f := cmd.Flags()
	f.BoolVarP(&o.Follow, "follow", "f", false, "Continue with new events, until interrupted")
	o.aggregateVar(cmd, &o.Aggregate, "Only the events of this aggregate, KIND/ID")
	f.IntVar(&o.Lines, "lines", 20, "How many of the last events; -1 for all. All of them with --since")
	f.DurationVar(&o.Since, "since", 0, "Only events stored within this time, for example 10m")
	o.Format.AddFlag(cmd, "json")
	return cmd
}

func (o *tailOptions) validate() error {
	switch {
	case o.Lines < allLines:
		return cli.Usagef("--lines is %d: it must be -1 or more", o.Lines)
	case o.Since < 0:
		return cli.Usagef("--since is %s: it must be greater than zero", o.Since)
	}
	if o.Aggregate != "" {
		a, err := parseAggregate(o.Aggregate)
		if err != nil {
			return err
		}
		o.of = &a
	}
	return o.Format.Validate()
}

func (o *tailOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	log, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	if err := o.past(ctx, log, head); err != nil || !o.Follow {
		return interrupted(ctx, err)
	}
	if log.Static {
		o.Env.Notef("Nothing follows: nobody writes to the log in %s now.", log.Where)
		return nil
	}
	err = log.Follow(ctx, head, func(r eventlog.Record) error {
		if o.of != nil && r.Aggregate != *o.of {
			return nil
		}
		return o.write(show.Events(o.words, r))
	})
	return interrupted(ctx, err)
}

func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &cli.ExitError{Code: cli.ExitInterrupted}
	}
	return err
}

// past shows what is in the log up to head.
func (o *tailOptions) past(ctx context.Context, log *reach.Log, head uint64) error {
	after := uint64(0)
	if o.Since > 0 {
		var err error
		if after, err = before(ctx, log, head, o.Env.Now().Add(-o.Since)); err != nil {
			return err
		}
	}
	switch {
	case o.Lines == 0:
		return nil
	case o.of != nil:
		return o.pastOf(ctx, log, after)
	case o.Lines > 0 && head > uint64(o.Lines): // a commit has an event or more, so the last n events are in the last n commits
		after = max(after, head-uint64(o.Lines))
	}
	last := tail{limit: o.Lines, write: o.write}
	_, err := log.Replay(ctx, after, func(r eventlog.Record) error { return last.add(show.Events(o.words, r)) })
	return errors.Join(err, last.flush())
}

// pastOf reads one aggregate: its commits alone, not those around them.
func (o *tailOptions) pastOf(ctx context.Context, log *reach.Log, after uint64) error {
	records, err := log.Read(ctx, *o.of, after)
	if err != nil {
		return err
	}
	if len(records) == 0 && after == 0 && !o.Follow {
		return fmt.Errorf("the log at %s has nothing on %s: %s lists the aggregates that there are", log.Where, o.of, o.Hint("", "log", "replay"))
	}
	last := tail{limit: o.Lines, write: o.write}
	for _, r := range records {
		if err := last.add(show.Events(o.words, r)); err != nil {
			return err
		}
	}
	return last.flush()
}

// before finds the last commit that was stored before a time. Commits are stored in the order of time.
func before(ctx context.Context, log *reach.Log, head uint64, at time.Time) (uint64, error) {
	low, high := uint64(0), head // low was stored before, what follows high was not
	for low < high {
		middle := low + (high-low+1)/2
		r, err := log.At(ctx, middle)
		if err != nil {
			return 0, err
		}
		if r.Stored.Before(at) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

// tail keeps the last events of many, and writes them in the end; without a limit it writes at once.
type tail struct {
	limit int
	write func([]show.Event) error
	kept  []show.Event
}

func (t *tail) add(events []show.Event) error {
	if t.limit < 0 {
		return t.write(events)
	}
	t.kept = append(t.kept, events...)
	if len(t.kept) > 2*t.limit+64 {
		t.kept = append([]show.Event(nil), t.kept[len(t.kept)-t.limit:]...)
	}
	return nil
}

func (t *tail) flush() error {
	return t.write(t.kept[max(0, len(t.kept)-max(t.limit, 0)):])
}

func (o *tailOptions) write(events []show.Event) error { return o.WriteEvents(events, &o.Format) }
