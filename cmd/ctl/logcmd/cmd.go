package logcmd

import (
	"context"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

type deps struct {
	*kit.Kit
	Format cli.Format
}

// NewCmd returns `scutectl log`.
func NewCmd(env *cli.Env) *cobra.Command {
	return kit.Group("log", "Read the event log: what was decided and done, by whom",
		`Read the event log: what was decided and done, by whom.

The log is read from the daemon's pod through a port-forward, from the folder of a stopped daemon (--log) or of local runs
(--local), or from a NATS server (--nats).`,
		newCmdStatus(env), newCmdTail(env), newCmdGrep(env), newCmdShow(env), newCmdChain(env), newCmdExport(env), newCmdReplay(env), newCmdSchema(env), newCmdReconcile(env),
		newCmdMigrate(env))
}

// command adds to cmd what all of these commands share: the flags that locate the log, and -o with
// the given formats.
func (d *deps) command(env *cli.Env, cmd *cobra.Command, run func(ctx context.Context, args []string) error, formats ...string) *cobra.Command {
	d.Kit = kit.New(env, cmd, "")
	d.Format.AddFlag(cmd, formats...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd.Context(), args)
		if err != nil && cmd.Context().Err() != nil {
			return cli.Interrupted(nil)
		}
		return err
	}
	return cmd
}

// exactlyOne returns a check that requires one argument. what describes the argument in the error.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return cli.Usagef("%s needs %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
