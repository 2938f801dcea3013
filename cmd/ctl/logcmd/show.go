package logcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

func newCmdShow(env *cli.Env) *cobra.Command {
	d := &deps{}
	cmd := &cobra.Command{
		Use:   "show EVENT",
		Short: "Show an event in full: time, actor, subject and data",
		Long: `Show an event in full: when it was decided and stored, by whom, what it is about, and its data.

` + eventArgument + ` For a commit all events are shown.`,
		Example: kit.Examples(env, "$ log show 17", "$ log show 17/0 -o json | jq .data"),
		Args:    oneEvent,
	}
	return d.command(env, cmd, func(ctx context.Context, args []string) error {
		s, err := d.readEvent(ctx, args[0])
		if err != nil {
			return err
		}
		events := slices.DeleteFunc(s.events, func(e kit.Event) bool { return !s.contains(e) })
		if d.Format.Data() {
			return d.WriteEvents(events, &d.Format)
		}
		for _, e := range events {
			if err := d.Print(details(d.View(), e, s.commit.Stored)); err != nil {
				return err
			}
		}
		return nil
	}, "json")
}

func details(v kit.View, e kit.Event, stored time.Time) (lines []string) {
	for _, f := range [][2]string{
		{"Event", fmt.Sprintf("%d/%d", e.Seq, e.Index)},
		{"Aggregate", e.Aggregate.String()},
		{"Clusters", strings.Join(e.Subject.Clusters, ", ")},
		{"Machines", strings.Join(e.Subject.Machines, ", ")},
		{"Fact", e.Line.Name},
		{"Detail", e.Text()},
		{"Decided", cli.Exact(e.Time) + " (" + cli.Ago(v.Now, e.Time) + ")"},
		{"Stored", cli.Exact(stored)},
		{"Actor", kit.Actor(e.Actor)},
		{"Type", e.Type},
		{"ID", e.ID},
		{"Caused by", e.Causation},
	} {
		if f[1] != "" {
			lines = append(lines, v.Field(f[0], cli.Clean(f[1])))
		}
	}
	lines = append(lines, "Data:")
	for line := range strings.SplitSeq(kit.Indent(e.Data), "\n") {
		lines = append(lines, "  "+cli.Clean(line))
	}
	return lines
}
