package logcmd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type tailOptions struct {
	deps
	Follow bool
	Lines  int
	Format cli.Format

	kit.Filter
	subjects *kit.Subjects
	shown    int
}

// allLines is the value of --lines that shows all events.
const allLines = -1

func newCmdTail(env *cli.Env) *cobra.Command {
	o, cmd := newTail(env)
	cmd.Use, cmd.Short, cmd.Args = "tail", "Show the last events, one per line", cli.NoArgs
	cmd.Example = kit.Examples(env, "$ log tail -f", "$ log tail --since 1h --aggregate move/fleet/prod/1a2b3c4d",
		"$ log tail --since 2026-07-30 --cluster prod --actor 'user/*'", "$ log tail --lines -1 -o json | jq .type")
	cmd.Flags().IntVar(&o.Lines, "lines", 20, "Number of last events to show; -1 for all. With --since, all are shown")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !o.Since.IsSet() || cmd.Flags().Changed("lines") {
			return o.run(cmd.Context())
		}
		o.Lines = allLines
		return o.run(cmd.Context())
	}
	return cmd
}

func newCmdGrep(env *cli.Env) *cobra.Command {
	o, cmd := newTail(env)
	cmd.Use, cmd.Short = "grep PATTERN", "Show the events that a regular expression matches, one per line"
	cmd.Long = `Show the events that a regular expression matches, one per line. It is matched against the aggregate, the fact, the detail, the
actor, the type and the data of each event. See https://golang.org/s/re2syntax for its syntax; (?i) at its beginning ignores case.

Exit status: 0 if an event was shown, 1 if none was.`
	cmd.Example = kit.Examples(env, "$ log grep quorum", "$ log grep '(?i)timed out' --since 24h --kind run -o json")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cli.Usagef("%s needs one pattern", cmd.CommandPath())
		}
		return nil
	}
	o.Lines = allLines
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pattern, err := regexp.Compile(args[0])
		if err != nil {
			return cli.Usagef("the pattern %q cannot be read: %w", args[0], err)
		}
		o.Pattern = pattern
		if err := o.run(cmd.Context()); err != nil || o.shown > 0 {
			return err
		}
		o.Env.Notef("No event matches.")
		return cli.SilentExit(cli.ExitFailed)
	}
	return cmd
}

// newTail returns the common part of tail and grep.
func newTail(env *cli.Env) (*tailOptions, *cobra.Command) {
	o, cmd := &tailOptions{subjects: kit.NewSubjects()}, &cobra.Command{}
	o.Kit = kit.New(env, cmd, "")
	f := cmd.Flags()
	f.BoolVarP(&o.Follow, "follow", "f", false, "Continue with new events, until interrupted")
	cmd.Flags().StringVar(&o.Aggregate, "aggregate", "", "Only the events of this aggregate, KIND/ID")
	o.AddFlags(f)
	kit.CompleteFilter(cmd)
	o.Format.AddFlag(cmd, "json")
	return o, cmd
}

func (o *tailOptions) run(ctx context.Context) error {
	if o.Lines < allLines {
		return cli.Usagef("--lines is %d: it must be -1 or more", o.Lines)
	}
	if err := o.Check(o.Env); err != nil {
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
	if err := o.showPast(ctx, log, head); err != nil || !o.Follow {
		return interrupted(ctx, err)
	}
	if log.Static {
		o.Env.Notef("No events follow: no process writes to the log in %s.", log.Where)
		return nil
	}
	err = log.Follow(ctx, head, func(r eventlog.Record) error { return o.write(o.selected(r)) })
	return interrupted(ctx, err)
}

func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &cli.ExitError{Code: cli.ExitInterrupted}
	}
	return err
}

// selected returns the events of a commit that the filter selects.
func (o *tailOptions) selected(r eventlog.Record) []kit.Event {
	return o.Select(kit.Events(r), o.subjects)
}

// showPast shows the events of the log up to head.
func (o *tailOptions) showPast(ctx context.Context, log *connect.Log, head uint64) error {
	last := tail{limit: o.Lines, write: o.write}
	one, err := o.SingleAggregate()
	if err != nil {
		return err
	}
	if one != nil {
		return o.showPastOf(ctx, log, *one, &last)
	}
	after, err := o.start(ctx, log, head)
	if err != nil {
		return err
	}
	_, err = log.Replay(ctx, after, func(r eventlog.Record) error { return last.add(o.selected(r)) })
	return errors.Join(err, last.flush())
}

// start returns the sequence of the commit before the first commit that must be read.
func (o *tailOptions) start(ctx context.Context, log *connect.Log, head uint64) (after uint64, err error) {
	if o.BySubject() {
		return 0, nil
	}
	if !o.Since.IsZero() {
		earlier, err := log.Until(ctx, o.Since.Add(-clockSkew-1)) // the last one before
		if err != nil {
			return 0, err
		}
		after = earlier.Seq
	}
	if o.All() && o.Lines >= 0 && head > uint64(o.Lines) {
		after = max(after, head-uint64(o.Lines)) // each commit has at least one event, so the last n commits contain the last n events
	}
	return after, nil
}

// clockSkew is how much later than its decision an event may appear to be stored, because the clocks of two machines differ.
const clockSkew = 5 * time.Minute

// showPastOf reads the commits of one aggregate only.
func (o *tailOptions) showPastOf(ctx context.Context, log *connect.Log, one eventlog.Aggregate, last *tail) error {
	records, err := log.Read(ctx, one, 0)
	if err != nil {
		return err
	}
	if len(records) == 0 && !o.Follow {
		return fmt.Errorf("the log at %s has no aggregate %s: %s lists all aggregates", log.Where, one, o.Hint("", "log", "replay"))
	}
	for _, r := range records {
		if err := last.add(o.selected(r)); err != nil {
			return err
		}
	}
	return last.flush()
}

// tail keeps the last events of many, and writes them in the end; without a limit it writes at once.
type tail struct {
	limit  int
	write  func([]kit.Event) error
	buffer []kit.Event
}

func (t *tail) add(events []kit.Event) error {
	if t.limit < 0 {
		return t.write(events)
	}
	t.buffer = append(t.buffer, events...)
	if len(t.buffer) > 2*t.limit+64 {
		t.buffer = append([]kit.Event(nil), t.buffer[len(t.buffer)-t.limit:]...)
	}
	return nil
}

func (t *tail) flush() error {
	return t.write(t.buffer[max(0, len(t.buffer)-max(t.limit, 0)):])
}

func (o *tailOptions) write(events []kit.Event) error {
	o.shown += len(events)
	return o.WriteEvents(events, &o.Format)
}
