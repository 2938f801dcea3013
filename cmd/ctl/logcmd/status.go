package logcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/output"
)

type statusOptions struct {
	*Deps
	Format output.Format
}

func newCmdStatus(d *Deps) *cobra.Command {
	o := &statusOptions{Deps: d}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show which log it is, where it ends, and how full it is",
		Example: "  " + d.Env.Name + " log status\n  " + d.Env.Name + " log status -o json | jq -r .id",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.Format.AddFlag(cmd.Flags(), "json", "yaml")
	d.Flags.AddLocal(cmd.Flags())
	return cmd
}

// status is what can be said of a log without reading its events.
type status struct {
	Where string `json:"where"`
	// ID tells the log from every other one.
	ID         string `json:"id"`
	Head       uint64 `json:"head"`
	Commits    uint64 `json:"commits"`
	Aggregates uint64 `json:"aggregates"`
	Bytes      uint64 `json:"bytes"`
	MaxBytes   uint64 `json:"maxBytes"`
}

func (o *statusOptions) run(ctx context.Context) error {
	if err := o.Format.Validate(); err != nil {
		return err
	}
	log, err := o.open(ctx)
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
	if o.Format.Value != "" {
		return encode(o.Env.Out, &o.Format, s)
	}
	return s.print(o.Env.Out)
}

func (s status) print(w io.Writer) error {
	const mib = 1 << 20
	_, err := fmt.Fprintf(w, "Log           %s\nID            %s\nHead          %d\nAggregates    %d\nSize          %.1f of %.0f MiB (%.0f %%)\n",
		s.Where, s.ID, s.Head, s.Aggregates, float64(s.Bytes)/mib, float64(s.MaxBytes)/mib, 100*float64(s.Bytes)/float64(max(s.MaxBytes, 1)))
	return err
}
