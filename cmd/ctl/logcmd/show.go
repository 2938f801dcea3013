package logcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type showOptions struct {
	deps
	Format cli.Format
}

func newCmdShow(env *cli.Env) *cobra.Command {
	o := &showOptions{}
	cmd := &cobra.Command{
		Use:   "show EVENT",
		Short: "Show an event in full: time, actor, subject and data",
		Long: `Show an event in full: when it was decided and stored, by whom, what it is about, and its data.

` + eventArgument + ` For a commit all events are shown.`,
		Example: kit.Examples(env, "$ log show 17", "$ log show 17/0 -o json | jq .data"),
		Args:    oneEvent,
		RunE:    o.withEvent(o.run),
	}
	o.Kit = kit.New(env, cmd, "")
	o.Format.AddFlag(cmd, "json")
	return cmd
}

func (o *showOptions) run(ctx context.Context, log *connect.Log, commit eventlog.Record, index int) error {
	events := kit.Events(commit)
	if index >= len(events) {
		return noSuchEvent(commit.Seq, index, len(events))
	}
	if o.Format.Data() {
		if index != all {
			events = events[index : index+1]
		}
		return o.WriteEvents(events, &o.Format)
	}
	subjects, err := o.subjects(ctx, log, commit)
	if err != nil {
		return err
	}
	return o.write(commit, events, subjects, index)
}

// subjects returns the subject of each event of a commit, which depends on earlier events of its aggregate.
func (o *showOptions) subjects(ctx context.Context, log *connect.Log, commit eventlog.Record) (about []kit.Subject, err error) {
	records, err := log.Read(ctx, commit.Aggregate, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the aggregate of commit %d: %w", commit.Seq, err)
	}
	subjects := kit.NewSubjects()
	for _, r := range records {
		about = about[:0]
		for _, e := range kit.Events(r) {
			about = append(about, subjects.Of(e))
		}
		if r.Seq == commit.Seq {
			break
		}
	}
	return about, nil
}

func (o *showOptions) write(commit eventlog.Record, events []kit.Event, about []kit.Subject, index int) error {
	v := o.View()
	for i := range events {
		e := about[i].Name(events[i])
		if index != all && i != index {
			continue
		}
		lines := []string{
			v.Field("Event", fmt.Sprintf("%d/%d", commit.Seq, i)),
			v.Field("Aggregate", e.Aggregate.String()),
		}
		for _, f := range [][2]string{
			{"Clusters", strings.Join(about[i].Clusters, ", ")},
			{"Machines", strings.Join(about[i].Machines, ", ")},
			{"Fact", e.Line.Name},
			{"Detail", e.Text()},
			{"Decided", cli.Exact(e.Time) + " (" + cli.Ago(v.Now, e.Time) + ")"},
			{"Stored", cli.Exact(commit.Stored)},
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
		if err := o.Print(append(lines, indented(e.Data)...)); err != nil {
			return err
		}
	}
	return nil
}

// indented returns indented JSON as lines, or the data unchanged if it is not JSON.
func indented(data []byte) []string {
	var out bytes.Buffer
	if err := json.Indent(&out, data, "  ", "  "); err != nil {
		return []string{"  " + cli.Clean(string(data))}
	}
	lines := strings.Split("  "+out.String(), "\n")
	for i := range lines {
		lines[i] = cli.Clean(lines[i])
	}
	return lines
}
