package logcmd

import (
	"context"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
)

// deps is the common environment of all log commands.
type deps struct{ *kit.Kit }

// NewCmd returns `scutectl log`.
func NewCmd(env *cli.Env) *cobra.Command {
	return kit.Group("log", "Read the event log: what was decided and done, by whom",
		`Read the event log: what was decided and done, by whom.

The log is read from the daemon's pod through a port-forward, from the folder of a stopped daemon (--log) or of local runs
(--local), or from a NATS server (--nats).`,
		newCmdStatus(env), newCmdTail(env), newCmdGrep(env), newCmdShow(env), newCmdChain(env), newCmdExport(env), newCmdReplay(env), newCmdSchema(env), newCmdReconcile(env),
		newCmdMigrate(env))
}

func (d *deps) open(ctx context.Context) (*connect.Log, error) {
	if err := d.Flags.Check(); err != nil {
		return nil, err
	}
	return d.Flags.Log(ctx, d.Env.Err)
}

// read opens the log, and calls fn with it.
func (d *deps) read(ctx context.Context, fn func(context.Context, *connect.Log) error) error {
	log, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	return fn(ctx, log)
}
