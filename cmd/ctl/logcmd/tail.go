package logcmd

import (
	"context"
	"regexp"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type tailOptions struct {
	*kit.Kit
	kit.Tail
}

func newCmdTail(env *cli.Env) *cobra.Command {
	o, cmd := newTail(env, "tail", "Show the last events, one per line")
	cmd.Args = cli.NoArgs
	cmd.Example = kit.Examples(env, "$ log tail -f", "$ log tail --since 1h --aggregate move/fleet/prod/1a2b3c4d",
		"$ log tail --since 2026-07-30 --cluster prod --actor 'user/*'", "$ log tail --lines -1 -o json | jq .type")
	cmd.Flags().IntVar(&o.Lines, "lines", 20, "Number of last events to show; -1 for all. With --since, all are shown")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Since.IsSet() && !cmd.Flags().Changed("lines") {
			o.Lines = -1
		}
		_, err := o.run(cmd.Context())
		return err
	}
	return cmd
}

func newCmdGrep(env *cli.Env) *cobra.Command {
	o, cmd := newTail(env, "grep PATTERN", "Show the events that a regular expression matches, one per line")
	cmd.Long = `Show the events that a regular expression matches, one per line. It is matched against the aggregate, the fact, the detail, the
actor, the type and the data of each event. See https://golang.org/s/re2syntax for its syntax; (?i) at its beginning ignores case.

Exit status: 0 if an event was shown, 1 if none was.`
	cmd.Example = kit.Examples(env, "$ log grep quorum", "$ log grep '(?i)timed out' --since 24h --kind run -o json")
	cmd.Args = exactlyOne("one pattern")
	o.Lines = -1
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.Pattern, err = regexp.Compile(args[0]); err != nil {
			return cli.Usagef("the pattern %q cannot be read: %w", args[0], err)
		}
		if shown, err := o.run(cmd.Context()); err != nil || shown > 0 {
			return err
		}
		o.Env.Notef("No event matches.")
		return cli.SilentExit(cli.ExitFailed)
	}
	return cmd
}

func newTail(env *cli.Env, use, short string) (*tailOptions, *cobra.Command) {
	o, cmd := &tailOptions{}, &cobra.Command{Use: use, Short: short}
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "Continue with new events, until interrupted")
	o.Filter.AddFlags(cmd)
	o.Format.AddFlag(cmd, "json")
	return o, cmd
}

func (o *tailOptions) run(ctx context.Context) (shown int, err error) {
	if err := o.Check(o.Env); err != nil {
		return 0, err
	}
	log, err := o.OpenLog(ctx)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	subjects := kit.NewSubjects()
	return o.Tail.Run(ctx, o.Kit, log, func(r eventlog.Record) ([]kit.Event, error) { return subjects.Events(r), nil })
}
