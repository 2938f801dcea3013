package logcmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/export"
)

func newCmdExport(env *cli.Env) *cobra.Command {
	d := &deps{}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the whole log as it is stored, one commit a line",
		Long: `Write the whole log as it is stored, one commit a line: JSON with the sequence, the time, the subject, the header and the data in
base64. Nothing is lost, so the export can be verified without a server (` + env.Hint("audit", "verify", "--export", "FILE") + `). The first line
names the form and the log.

Of a damaged log it writes what can be read.`,
		Example: kit.Examples(env, "$ log export > log.jsonl"),
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.Flags.Examine = true
			return interrupted(cmd.Context(), d.export(cmd.Context()))
		},
	}
	d.Kit = kit.New(env, cmd, "")
	return cmd
}

func (d *deps) export(ctx context.Context) (err error) {
	log, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	w, err := export.NewWriter(d.Env.Out, export.Head{LogID: log.ID(), Last: head})
	if err != nil {
		return err
	}
	progress, last, missing := d.Env.Progress(), uint64(0), uint64(0)
	err = log.Scan(ctx, func(r eventlog.Record) error {
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
		d.Env.Notef("%d of %d commits cannot be read and are not in the export: %s says which.", missing, head, d.Hint("", "audit", "verify"))
		return cli.Failed()
	}
	return nil
}
