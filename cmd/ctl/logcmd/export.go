package logcmd

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type exportOptions struct {
	deps
	kit.Filter
}

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
	}
	o.Filter.AddFlags(cmd)
	return o.command(env, cmd, func(ctx context.Context, _ []string) error { return o.run(ctx) }, formatCloudEvents, formatCSV)
}

func (o *exportOptions) run(ctx context.Context) error {
	if err := o.Check(o.Env); err != nil {
		return err
	}
	if o.Format.Value == "" && !o.All() {
		return cli.Usagef("events can be selected only with -o cloudevents or -o csv: the default export contains the whole log, so that it can be verified")
	}
	o.Flags.Examine = true
	log, err := o.OpenLog(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	write, end, err := o.writer(log, head)
	if err != nil {
		return err
	}
	progress, last, missing := o.Env.Progress(), uint64(0), uint64(0)
	err = log.Scan(ctx, func(r eventlog.Record) error {
		progress.Showf("exporting: %d of %d commits", r.Seq, head)
		missing += r.Seq - last - 1
		last = r.Seq
		if err := write(r); err != nil {
			return fmt.Errorf("exporting commit %d: %w", r.Seq, err)
		}
		return nil
	})
	progress.Done()
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	if missing += head - min(last, head); missing > 0 {
		o.Env.Notef("%d of %d commits cannot be read and are not in the export: %s lists them.", missing, head, o.Hint("", "audit", "verify"))
		return cli.SilentExit(cli.ExitFailed)
	}
	return nil
}

var csvHeader = []string{
	"sequence", "index", "time", "kind", "aggregate", "clusters", "machines", "type", "actor", "fact", "detail", "id", "causation",
}

func (o *exportOptions) writer(log *connect.Log, head uint64) (write func(eventlog.Record) error, end func() error, err error) {
	subjects := kit.NewSubjects()
	switch o.Format.Value {
	case formatCloudEvents:
		out := bufio.NewWriterSize(o.Env.Out, 256<<10)
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return func(r eventlog.Record) error {
			selected := o.Select(subjects.Events(r))
			events, err := r.CloudEvents(log.ID())
			if err != nil {
				return nil //nolint:nilerr // scute did not write this commit; the lossless export contains it
			}
			for _, e := range selected {
				if err := encoder.Encode(events[e.Index]); err != nil {
					return err
				}
			}
			return nil
		}, out.Flush, nil
	case formatCSV:
		out := csv.NewWriter(o.Env.Out)
		return func(r eventlog.Record) error {
				for _, e := range o.Select(subjects.Events(r)) {
					if err := out.Write(csvRow(e)); err != nil {
						return err
					}
				}
				return nil
			}, func() error {
				out.Flush()
				return out.Error()
			}, out.Write(csvHeader)
	default:
		w, err := eventlog.NewExportWriter(o.Env.Out, eventlog.ExportHead{LogID: log.ID(), Last: head})
		if err != nil {
			return nil, nil, err
		}
		return w.Write, w.Close, nil
	}
}

func csvRow(e kit.Event) []string {
	row := []string{
		strconv.FormatUint(e.Seq, 10), strconv.Itoa(e.Index), cli.Exact(e.Time), string(e.Aggregate.Kind), e.Aggregate.ID,
		strings.Join(e.Subject.Clusters, " "), strings.Join(e.Subject.Machines, " "), e.Type, kit.Actor(e.Actor), e.Line.Name, e.Text(), e.ID, e.Causation,
	}
	for i := range row {
		row[i] = cell(row[i])
	}
	return row
}

// cell makes a text safe for a cell of a spreadsheet. It removes control characters, and prevents
// the text from being evaluated as a formula.
func cell(text string) string {
	text = cli.Clean(text)
	if begin := strings.TrimLeft(text, " "); begin != "" && strings.ContainsRune("=+-@", rune(begin[0])) {
		return "'" + text
	}
	return text
}
