package kit

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
)

type describeOptions[T any] struct {
	*Kit
	noun     *Noun[T]
	Timeline bool
}

// Describe returns `describe NOUN NAME`.
func Describe[T any](env *cli.Env, n *Noun[T]) *cobra.Command {
	o := &describeOptions[T]{noun: n}
	cmd := &cobra.Command{
		Short: "Show the state of " + n.WithArticle + ", what it waits for, and what happened",
		Long: strings.TrimSpace("Show the state of " + n.WithArticle + ", what it waits for, and what you can do. If the log can be reached, its events follow.\n\n" +
			n.DescribeLong),
		Example: Examples(env, "$ describe "+n.Name+" prod -n fleet", "$ describe "+n.Name+" prod --log /var/lib/scute"),
	}
	o.Kit = Command(env, n, cmd, o.run)
	o.addAt(cmd)
	cmd.Flags().BoolVar(&o.Timeline, "timeline", true, "Also show what only the log contains, such as events, if it can be reached")
	return cmd
}

func (o *describeOptions[T]) run(ctx context.Context, name string) error {
	p, err := Open(ctx, o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer p.Close()
	t, err := p.find(ctx, p.Key(name))
	if err != nil {
		return err
	}
	a, inLog := o.noun.Log(t)
	var unreached error
	if o.Timeline && inLog {
		unreached = p.ConnectLog(ctx)
	}
	if o.noun.AddLogDetails != nil && p.Log != nil {
		t = o.noun.AddLogDetails(ctx, p, t)
	}
	shown := *p
	if !o.Timeline {
		shown.Log = nil
	}
	lines, err := o.noun.Describe(ctx, &shown, t)
	if err != nil {
		return err
	}
	if err := o.Print(lines); err != nil || !o.Timeline || !inLog {
		return err
	}
	if unreached != nil {
		o.Env.Notef("\nThe timeline is omitted, because the log could not be reached: %v", unreached)
		return nil
	}
	return o.timeline(ctx, p, t, a)
}

func (o *describeOptions[T]) timeline(ctx context.Context, p *Session[T], t T, a eventlog.Aggregate) error {
	events, err := p.events(ctx, a, p.reader(t))
	if err != nil || len(events) == 0 {
		return err
	}
	table, left := o.View().Timeline(events)
	if err := o.Print(append([]string{"", "Timeline, from the log at " + p.Log.Where + ":"}, table...)); err != nil {
		return err
	}
	if left > 0 {
		o.Env.Notef("%d earlier rows are omitted: %s shows every event.", left, p.Hint("logs", o.noun.Key(t)))
	}
	return nil
}

// events returns an aggregate's events, oldest first. The log must be connected.
func (p *Session[T]) events(ctx context.Context, a eventlog.Aggregate, read reader) (events []Event, err error) {
	records, err := p.Log.Read(ctx, a, 0)
	for _, r := range records {
		var more []Event
		if more, err = read(r); err != nil {
			break
		}
		events = append(events, more...)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s from the log at %s: %w", a, p.Log.Where, err)
	}
	return events, nil
}

// reader returns the events of a commit. It must be called with all commits in order.
type reader func(eventlog.Record) ([]Event, error)

func (p *Session[T]) reader(t T) reader {
	if p.Noun.Events != nil {
		return p.Noun.Events(t)
	}
	return func(r eventlog.Record) ([]Event, error) { return Events(r), nil }
}
