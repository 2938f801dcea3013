package audit

import (
	"cmp"
	"context"
	"errors"
	"syscall"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/evidence"
)

// Exit codes of the commands that verify. Scripts rely on them.
const (
	exitViolated  = cli.ExitFailed // something differs from the sealed log
	exitUnchecked = 2              // nothing was verified; the reason is printed
)

type options struct {
	*kit.Kit
	format cli.Format

	key, checkpoint, export, hashes string
}

// NewCmd returns `scutectl audit`.
func NewCmd(env *cli.Env) *cobra.Command {
	return kit.Group("audit", "Prove that nothing in the event log was changed", `Prove that nothing in the event log was changed.

The daemon seals the log: it publishes signed checkpoints, each of which covers all commits up to a sequence. These commands check
a log, or an export of it, against the checkpoints.`,
		newCmdVerify(env), newCmdReport(env), newCmdProve(env), newCmdCheck(env), newCmdConsistency(env), newCmdKey(env))
}

func newOptions(env *cli.Env) *options {
	o := &options{Kit: &kit.Kit{Env: env, Flags: connect.New()}}
	o.Flags.Examine = true
	return o
}

// command makes cmd call run. The command requires exactly n arguments; what describes them in the
// error.
func (o *options) command(cmd *cobra.Command, n int, what string, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if n > 0 && len(args) != n {
			return cli.Usagef("%s needs %s", cmd.CommandPath(), what)
		}
		return cmp.Or(cli.NoArgs(cmd, args[n:]), o.validate())
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd.Context(), args)
		var exit *cli.ExitError
		if err == nil || errors.As(err, &exit) || errors.Is(err, syscall.EPIPE) {
			return err
		}
		o.Env.Notef("%s: the check failed: %v", o.Env.Name, err)
		return cli.SilentExit(exitUnchecked)
	}
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.Flags.AddFlags(f)
	o.Flags.AddLocal(f)
	f.StringVar(&o.key, "key", "", "Public key of the log, or a file with it; the key published in the cluster if empty")
	f.StringVar(&o.export, "export", "", "Export of the log (log export) or folder of a backup (backup log) to read instead of the log; - for standard input")
	f.StringVar(&o.hashes, "hashes", "", "Leaf hashes of the log, or their folder, to locate changes; with --log the folder seal beside the log")
}

func (o *options) addCheckpoint(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.checkpoint, "checkpoint", "", "File with one or more checkpoints of the log; the checkpoint in the cluster's ConfigMap if empty")
}

func (o *options) validate() error {
	if err := o.Flags.Check(); err != nil {
		return err
	}
	if o.export != "" && o.Flags.LogOnly() {
		return cli.Usagef("--export cannot be used together with --log, --local or --nats")
	}
	return nil
}

func newCmdKey(env *cli.Env) *cobra.Command {
	o := newOptions(env)
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Print the public key that the daemon publishes",
		Long: `Print the public key that the daemon publishes. Keep it outside the cluster: anybody who can change the log may also be able to change
the published key.`,
		Example: kit.Examples(env, "$ audit key > scute.pub"),
		Args:    cli.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.Flags.Check() },
		RunE: func(cmd *cobra.Command, _ []string) error {
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
