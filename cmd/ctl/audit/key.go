package audit

import (
	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/evidence"
)

func newCmdKey(env *cli.Env) *cobra.Command {
	o := newOptions(env)
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Print the public key that the daemon publishes",
		Long: `Print the public key that the daemon publishes. Keep it outside the cluster: anybody who can change the log may also be able to change
the published key.`,
		Example: kit.Examples(env, "$ audit key > scute.pub"),
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Flags.Check(); err != nil {
				return err
			}
			found, err := findConfigMap(cmd.Context(), o.Flags)
			if err != nil {
				return err
			}
			return o.Env.Linef("%s", found.Data[evidence.KeyField])
		},
	}
	o.Flags.AddFlags(cmd.Flags())
	return cmd
}
