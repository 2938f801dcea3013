package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
)

type logsOptions[T any] struct {
	*Kit
	Tail
	noun *Noun[T]
	Task string
}

// Logs returns `logs NOUN NAME`.
func Logs[T any](env *cli.Env, n *Noun[T]) *cobra.Command {
	o := &logsOptions[T]{noun: n}
	cmd := &cobra.Command{
		Short:   "Show the events of " + n.WithArticle + ", one per line",
		Long:    "Show the events of " + n.WithArticle + " in the log, one per line. With -o json each line is an event with its data.",
		Example: Examples(env, "$ logs "+n.Name+" prod -n fleet", "$ logs "+n.Name+" prod -f --lines 10"),
	}
	o.Kit = Command(env, n, cmd, o.run)
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "Continue with new events, until interrupted")
	cmd.Flags().IntVar(&o.Lines, "lines", -1, "Number of last events to show; -1 for all")
	cmd.Flags().Var(&o.Since, "since", sinceUsage)
	o.Format.AddFlag(cmd, "json")
	if n.PrintOutput != nil {
		TaskVar(cmd, o.Kit, n, &o.Task, "Show the output of the commands and Jobs of this task instead of events. Local runs")
		cmd.Example += "\n" + Examples(env, "$ logs "+n.Name+" prod --local --task install")
	}
	return cmd
}

func (o *logsOptions[T]) run(ctx context.Context, name string) error {
	if o.Task != "" && (o.Follow || o.Lines != -1 || o.Since.IsSet() || o.Format.Value != "") {
		return cli.Usagef("--task shows all output of a task: leave out --follow, --lines, --since and -o, which are for events")
	}
	if err := o.Check(o.Env); err != nil {
		return err
	}
	p, err := Open(ctx, o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer p.Close()
	t, err := p.find(ctx, p.Key(name))
	if err != nil {
		return err
	}
	if o.Task != "" {
		return o.noun.PrintOutput(ctx, p, t, o.Task)
	}
	a, inLog := o.noun.Log(t)
	if !inLog {
		return fmt.Errorf("%s %s is not in a log yet: %s checks whether a daemon runs", o.noun.Name, o.noun.Key(t), p.Kit.Hint("", "doctor"))
	}
	if err := p.ConnectLog(ctx); err != nil {
		return err
	}
	o.Aggregate = a.String()
	_, err = o.Tail.Run(ctx, o.Kit, p.Log, p.reader(t))
	return err
}

// WriteEvents writes one event per line.
func (k *Kit) WriteEvents(events []Event, format *cli.Format) error {
	v := k.View()
	for _, e := range events {
		if !format.Data() {
			if err := k.Print([]string{v.Line(e)}); err != nil {
				return err
			}
			continue
		}
		line, err := json.Marshal(jsonEvent{
			Sequence: e.Seq, Aggregate: e.Aggregate.String(), ID: e.ID, Type: e.Type, Time: e.Time, Actor: e.Actor, Unverified: eventlog.Unverified(e.Actor),
			Causation: e.Causation, Correlation: e.Correlation, Fact: e.Line.Name, Detail: e.Text(), Data: e.Data,
		})
		if err != nil {
			return fmt.Errorf("encoding event %s of commit %d: %w", e.ID, e.Seq, err)
		}
		if _, err := fmt.Fprintf(k.Env.Out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

type jsonEvent struct {
	Sequence    uint64          `json:"sequence"`
	Aggregate   string          `json:"aggregate"`
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Time        time.Time       `json:"time"`
	Actor       string          `json:"actor,omitempty"`
	Unverified  bool            `json:"unverified,omitempty"` // only the client claims the actor
	Causation   string          `json:"causation,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	Fact        string          `json:"fact"`
	Detail      string          `json:"detail,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
}
