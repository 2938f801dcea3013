package logcmd

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type exportOptions struct {
	deps
	Format cli.Format

	kit.Filter
}

// Formats of exported events.
const (
	formatCloudEvents = "cloudevents"
	formatCSV         = "csv"
)

func newCmdExport(env *cli.Env) *cobra.Command {
	o := &exportOptions{}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the whole log as it is stored, one commit per line; or events as CloudEvents or CSV",
		Long: `Write the whole log as it is stored, one commit per line: JSON with the sequence, the time, the subject, the header and the data in
base64. Nothing is lost, so the export can be verified without a server (` + env.Hint("audit", "verify", "--export", "FILE") + `). The first line
names the format and the log.

With -o cloudevents it writes events instead, each as a CloudEvent 1.0 in one line of JSON; with -o csv, as a table with a header.
These two formats are for other programs. They accept the flags that select events, and cannot be verified.

For a damaged log it writes the commits that can be read.`,
		Example: kit.Examples(env, "$ log export > log.jsonl", "$ log export -o csv --since 2026-07-01 --kind remediation > july.csv",
			"$ log export -o cloudevents --cluster prod"),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Flags.Examine = true
			return interrupted(cmd.Context(), o.run(cmd.Context()))
		},
	}
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().StringVar(&o.Aggregate, "aggregate", "", "Only the events of this aggregate, KIND/ID")
	o.AddFlags(cmd.Flags())
	kit.CompleteFilter(cmd)
	o.Format.AddFlag(cmd, formatCloudEvents, formatCSV)
	return cmd
}

func (o *exportOptions) run(ctx context.Context) error {
	if err := o.Check(o.Env); err != nil {
		return err
	}
	if o.Format.Value == "" && !o.All() {
		return cli.Usagef("events can be selected only with -o cloudevents or -o csv: the default export contains the whole log, so that it can be verified")
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
	w, err := o.writer(log, head)
	if err != nil {
		return err
	}
	return o.copy(ctx, log, head, w)
}

// writer writes commits in one of the formats.
type writer interface {
	Write(r eventlog.Record) error
	Close() error
}

func (o *exportOptions) writer(log *connect.Log, head uint64) (writer, error) {
	selected := eventSelector{&o.Filter, kit.NewSubjects()}
	switch o.Format.Value {
	case formatCloudEvents:
		return &cloudEventWriter{selected, bufio.NewWriterSize(o.Env.Out, 256<<10), log.ID()}, nil
	case formatCSV:
		w := &csvWriter{selected, csv.NewWriter(o.Env.Out)}
		return w, w.out.Write(csvHeader)
	default:
		return eventlog.NewExportWriter(o.Env.Out, eventlog.ExportHead{LogID: log.ID(), Last: head})
	}
}

func (o *exportOptions) copy(ctx context.Context, log *connect.Log, head uint64, w writer) error {
	progress, last, missing := o.Env.Progress(), uint64(0), uint64(0)
	err := log.Scan(ctx, func(r eventlog.Record) error {
		progress.Showf("exporting: %d of %d commits", r.Seq, head)
		missing += r.Seq - last - 1
		last = r.Seq
		return w.Write(r)
	})
	progress.Done()
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if missing += head - min(last, head); missing > 0 {
		o.Env.Notef("%d of %d commits cannot be read and are not in the export: %s lists them.", missing, head, o.Hint("", "audit", "verify"))
		return cli.Failed()
	}
	return nil
}
