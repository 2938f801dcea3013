package logcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

func newCmdStatus(env *cli.Env) *cobra.Command {
	d := &deps{}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show which log it is, where it ends, and how full it is",
		Example: kit.Examples(env, "$ log status", "$ log status -o jsonpath='{.id}'"),
		Args:    cli.NoArgs,
	}
	return d.command(env, cmd, func(ctx context.Context, _ []string) error { return d.status(ctx) }, "json", "yaml", "jsonpath=...")
}

type status struct {
	Where      string `json:"where"`
	ID         string `json:"id"`
	Head       uint64 `json:"head"`
	Commits    uint64 `json:"commits"`
	Aggregates uint64 `json:"aggregates"`
	Bytes      uint64 `json:"bytes"`
	MaxBytes   uint64 `json:"maxBytes"`
}

func (d *deps) status(ctx context.Context) error {
	log, err := d.OpenLog(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	stats, err := log.Stats(ctx)
	if err != nil {
		return err
	}
	s := status{
		Where: log.Where, ID: log.ID(), Head: stats.Commits, Commits: stats.Commits, Aggregates: stats.Aggregates, Bytes: stats.Bytes, MaxBytes: stats.MaxBytes,
	}
	if d.Format.Value != "" {
		return d.Format.Print(d.Env.Out, s)
	}
	const mib = 1 << 20
	return d.Print([]string{
		"Log           " + s.Where, "ID            " + s.ID, fmt.Sprintf("Head          %d", s.Head), fmt.Sprintf("Aggregates    %d", s.Aggregates),
		fmt.Sprintf("Size          %.1f of %.0f MiB (%.0f %%)", float64(s.Bytes)/mib, float64(s.MaxBytes)/mib, 100*float64(s.Bytes)/float64(max(s.MaxBytes, 1))),
	})
}
