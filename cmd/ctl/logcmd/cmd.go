package logcmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
)

// Deps is what all commands about the log share.
type Deps struct {
	Env   *cli.Env
	Flags *reach.Flags
}

// NewCmd is `scutectl log`.
func NewCmd(env *cli.Env) *cobra.Command {
	d := &Deps{Env: env, Flags: reach.New()}
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Read the event log: what was decided and done, by whom; and push a local run to a cluster's",
		Long: `Read the event log: what was decided and done, by whom.

The log is found in the daemon's pod, behind a port-forward; or in the folder of a stopped daemon or of local runs (--log), or
on a NATS server (--nats).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	d.Flags.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(newCmdStatus(d), newCmdTail(d), newCmdExport(d), newCmdReplay(d), newCmdPush(d), newCmdReconcile(d))
	return cmd
}

func (d *Deps) open(ctx context.Context) (*reach.Log, error) {
	if err := d.Flags.Check(); err != nil {
		return nil, err
	}
	return d.Flags.Log(ctx, d.Env.Err)
}

func (d *Deps) view() show.View {
	return show.View{Paint: term.Paint{On: d.Env.Colored(d.Env.Out)}, Width: d.Env.Width(), Now: d.Env.Now()}
}

// parseAggregate reads KIND/ID.
func parseAggregate(s string) (eventlog.Aggregate, error) {
	kind, id, ok := strings.Cut(s, "/")
	if !ok || kind == "" || id == "" {
		return eventlog.Aggregate{}, cli.Usagef("--aggregate is %q: it must be KIND/ID, for example move/fleet/prod/1a2b3c4d", s)
	}
	return eventlog.Aggregate{Kind: eventlog.Kind(kind), ID: id}, nil
}
