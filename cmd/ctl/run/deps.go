package run

import (
	"context"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// deps is what a command about one run has at hand.
type deps struct {
	*kit.Kit
	noun *noun
	Options
}

// command is a verb about one run: it takes its name, and the options that say where it is.
func (d *deps) command(env *cli.Env, cmd *cobra.Command, run func(ctx context.Context, name string) error) *cobra.Command {
	n := d.noun
	cmd.Use, cmd.Aliases, cmd.Args = "run NAME"+cmd.Use, n.Aliases(), kit.OneName(n.A)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0]) }
	d.Kit = kit.New(env, cmd, n.Plural)
	cmd.ValidArgsFunction = kit.Complete(d.Kit, n, 1)
	return cmd
}
