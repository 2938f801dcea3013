package logcmd

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

func newCmdChain(env *cli.Env) *cobra.Command {
	d, forward := &deps{}, false
	cmd := &cobra.Command{
		Use:   "chain EVENT",
		Short: "Show why an event happened: its causes, back to a request or an observation",
		Long: `Show why an event happened: its causes, back to the request of a person or to an observation.

` + eventArgument + ` The first cause is shown first. With --forward, the events that this event caused are shown after it. An event
that caused several others shows them as branches.`,
		Example: kit.Examples(env, "$ log chain 17", "$ log chain 17/0 --forward", "$ log chain 17 -o json | jq .actor"),
		Args:    oneEvent,
	}
	cmd.Flags().BoolVar(&forward, "forward", false, "Also show the events that this event caused")
	return d.command(env, cmd, func(ctx context.Context, args []string) error {
		s, err := d.readEvent(ctx, args[0])
		if err != nil {
			return err
		}
		return d.printChain(newChain(s.events, s.contains, forward))
	}, "json")
}

// chain contains the events of an aggregate. Each event follows its cause.
type chain []link

type link struct {
	kit.Event
	cause           int // index in the chain, -1 for none
	selected, shown bool
}

// newChain returns the chain of an aggregate's events. It shows the selected events and their
// causes. If effects is set, it also shows what the selected events caused.
func newChain(events []kit.Event, selected func(kit.Event) bool, effects bool) chain {
	c, byID := make(chain, 0, len(events)), make(map[string]int)
	for i, e := range events {
		l := link{Event: e, cause: -1, selected: selected(e)}
		if cause, ok := byID[e.Causation]; ok && e.Causation != "" {
			l.cause = cause
		}
		l.shown = l.selected || effects && l.cause >= 0 && c[l.cause].shown
		byID[e.ID] = i
		c = append(c, l)
	}
	for i := len(c) - 1; i >= 0; i-- {
		if c[i].shown && c[i].cause >= 0 {
			c[c[i].cause].shown = true
		}
	}
	return c
}

const maxMissing = 10

func (d *deps) printChain(c chain) error {
	var events []kit.Event
	for _, l := range c {
		if l.shown {
			events = append(events, l.Event)
		}
	}
	if d.Format.Data() {
		return d.WriteEvents(events, &d.Format)
	}
	if err := d.Print(append([]string{"Aggregate     " + events[0].Aggregate.String(), ""}, c.lines(d.View())...)); err != nil {
		return err
	}
	lost := c.missingCauses()
	for _, l := range lost[:min(len(lost), maxMissing)] {
		d.Env.Notef("Event %d/%d was caused by event %q, which is missing from the log or cannot be read: %s shows what is wrong.", l.Seq, l.Index, l.Causation, d.Hint("", "log", "replay"))
	}
	if len(events) == 1 && len(lost) == 0 {
		d.Env.Notef("This event has no recorded cause: %s requested or observed it, or an earlier version of scute wrote it.", kit.Actor(events[0].Actor))
	}
	return nil
}

// missingCauses returns the shown events that have a cause which is not among the aggregate's
// events.
func (c chain) missingCauses() (list []link) {
	for _, l := range c {
		if l.shown && l.cause < 0 && l.Causation != "" {
			list = append(list, l)
		}
	}
	return list
}

// maxBranchWidth limits the indentation of branches. Without the limit, a run with thousands of
// attempts, each of which is a branch, would need lines of thousands of columns.
const maxBranchWidth = 30

// lines draws the events as a tree. If an event has only one effect, the effect is drawn at the
// same depth.
func (c chain) lines(v kit.View) []string {
	followers := make(map[int][]int) // by the index of the cause
	for i, l := range c {
		if l.shown {
			followers[l.cause] = append(followers[l.cause], i)
		}
	}
	t := &cli.Table{Header: []string{"TIME", "AGO", "EVENT", "FACT", "DETAIL", "ACTOR"}, Wrap: 2}
	var draw func(list []int, before string)
	draw = func(list []int, before string) {
		for n, i := range list {
			head, below := before, before
			switch {
			case len(list) == 1:
			case n == len(list)-1:
				head, below = before+"└─ ", before+"   "
			default:
				head, below = before+"├─ ", before+"│  "
			}
			l, what := &c[i], c[i].Line.Name
			if l.selected {
				what = v.Paint.Text(cli.Bold, what+" *")
			}
			t.Add(cli.Exact(l.Time), cli.Ago(v.Now, l.Time), fmt.Sprintf("%d/%d", l.Seq, l.Index), head+what, l.Text(), kit.Actor(strings.TrimSpace(l.Actor)))
			if utf8.RuneCountInString(below) > maxBranchWidth {
				below = before
			}
			draw(followers[i], below)
		}
	}
	draw(followers[-1], "")
	return t.Lines(v.Paint, v.Width)
}
