package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/audit"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/doctor"
	"scute.dev/cmd/ctl/logcmd"
	"scute.dev/cmd/ctl/machines"
	"scute.dev/cmd/ctl/move"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/cmd/ctl/run"
)

// Name is how a program called by a path is called in hints: "scutectl", or "kubectl scute" as a plugin of kubectl.
func Name(path string) string {
	if strings.HasPrefix(filepath.Base(path), "kubectl-scute") {
		return "kubectl scute"
	}
	return "scutectl"
}

// Options are for builds other than the real one.
type Options = run.Options

// Run runs a command line and returns the exit code. What is to be said of an error has been said then.
func Run(ctx context.Context, env *cli.Env, args []string) int {
	return RunWith(ctx, env, Options{}, args)
}

// RunWith is Run of a build other than the real one.
func RunWith(ctx context.Context, env *cli.Env, options Options, args []string) int {
	started := false
	cmd := newCmd(env, options, &started)
	cmd.SetArgs(args)
	cmd.SetIn(env.In)
	cmd.SetOut(env.Out)
	cmd.SetErr(env.Err)
	called, err := cmd.ExecuteContextC(ctx)
	if err != nil && !started {
		// cobra itself refused the command line: a flag, an argument, a command that there is not.
		var exit *cli.ExitError
		if !errors.As(err, &exit) {
			err = cli.Usagef("%w", err)
		}
	}
	code, tell := cli.Code(err)
	if tell {
		env.Notef("%s: %v", env.Name, err)
		if code == cli.ExitUsage {
			env.Notef("See `%s --help`.", called.CommandPath())
		}
	}
	return code
}

func newCmd(env *cli.Env, options Options, started *bool) *cobra.Command {
	use := strings.ReplaceAll(env.Name, " ", "-")
	cmd := &cobra.Command{
		Use:   use,
		Short: "Run workflows, move Cluster API clusters between management clusters, and read what happened",
		Long: `scutectl talks to scute, the event-sourced controller for Cluster API management clusters: it runs workflows, here or in a
cluster, asks for moves, shows and follows them, and reads the log of everything that was decided and done.

Data goes to the standard output, all else to the standard error.
Exit status: 0 done, 1 failed or the answer is no, 2 the command line or the manifest is wrong, 130 interrupted; of a
run also 3 paused, 4 degraded.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: env.Name},
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := env.CheckColor(); err != nil {
				return err
			}
			*started = true
			return nil
		},
	}
	cmd.PersistentFlags().StringVar(&env.Color, "color", cli.ColorAuto, "Colors: auto (on a terminal, unless NO_COLOR is set), always, never")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{cli.ColorAuto, cli.ColorAlways, cli.ColorNever}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(run.Commands(env, options)...)
	cmd.AddCommand(move.NewCmd(env), remediation.NewCmd(env), logcmd.NewCmd(env), audit.NewCmd(env), doctor.NewCmd(env), newCmdVersion(env))
	for _, verb := range cmd.Commands() {
		if verb.Name() == "get" {
			verb.Short = "List runs, or show machines and what becomes of them"
			verb.AddCommand(machines.NewCmdGet(env))
		}
	}
	return cmd
}

func newCmdVersion(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(env.Out, "scutectl %s (%s, %s/%s)\n", env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
