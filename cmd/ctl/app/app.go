package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no CA certificates
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"scute.dev/cmd/ctl/audit"
	"scute.dev/cmd/ctl/backup"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/doctor"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/logcmd"
	"scute.dev/cmd/ctl/move"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/cmd/ctl/run"
	"scute.dev/cmd/ctl/ui"
)

// Name returns the program's name for hints: "scutectl", or "kubectl scute" if path is that of the
// plugin.
func Name(path string) string {
	if strings.HasPrefix(filepath.Base(path), "kubectl-scute") {
		return "kubectl scute"
	}
	return "scutectl"
}

// Options configure builds other than the official one.
type Options = run.Options

// Run runs a command line, prints its error, and returns the exit code.
func Run(ctx context.Context, env *cli.Env, args []string) int {
	return RunWith(ctx, env, Options{}, args)
}

// RunWith works like Run, with options.
func RunWith(ctx context.Context, env *cli.Env, options Options, args []string) int {
	// Without a logger, controller-runtime prints a warning with a stack trace after 30 seconds.
	ctrllog.SetLogger(logr.Discard())
	started := false
	cmd := newCmd(env, options, &started)
	cmd.SetArgs(withNoun(cmd, args))
	cmd.SetIn(env.In)
	cmd.SetOut(env.Out)
	cmd.SetErr(env.Err)
	called, err := cmd.ExecuteContextC(ctx)
	if err != nil && !started {
		// cobra rejected the command line: an unknown flag, argument or command.
		if _, ok := errors.AsType[*cli.ExitError](err); !ok {
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
	cmd := kit.Group(strings.ReplaceAll(env.Name, " ", "-"),
		"Run workflows, move Cluster API clusters between management clusters, and see what happened",
		`scutectl is the command line of scute, the event-sourced controller for Cluster API management clusters. It runs workflows,
locally or in a cluster, creates moves, shows and follows them, and reads the log of all decisions and actions.

Commands have the form VERB NOUN [NAME], like those of kubectl. The nouns are run, move, pause, remediation, machine and backupschedule; their plurals and
short names are accepted.

Data is written to standard output, everything else to standard error.
Exit status: 0 success, 1 failure or a negative answer, 2 invalid command line or manifest, 130 interrupted; for a
run also 3 paused, 4 degraded.`)
	cmd.Example = kit.Examples(env, "$ run -f create.yaml --local", "$ get moves -A", "$ describe run create-prod", "$ watch machines -n fleet")
	cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: env.Name}
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if typed := cmd.Flags().Args(); cmd.HasSubCommands() && len(typed) > 0 { // an unknown command, whose flags are unknown too
			return cmp.Or(cmd.ValidateArgs(typed), err)
		}
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
			var names []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					names = append(names, f.Name)
				}
			})
			if near := cli.Nearest(unknown.GetSpecifiedName(), names); near != "" {
				return fmt.Errorf("%w, did you mean --%s?", err, near)
			}
		}
		return err
	})
	cmd.Version = env.Version
	cmd.SetVersionTemplate(versionLine(env) + "\n")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error {
		if err := env.CheckColor(); err != nil {
			return err
		}
		*started = true
		return nil
	}
	cmd.PersistentFlags().StringVar(&env.Color, "color", cli.ColorAuto, "Colors: auto (on a terminal, unless NO_COLOR is set), always, never")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{cli.ColorAuto, cli.ColorAlways, cli.ColorNever}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(run.NewCmdRun(env, options))
	cmd.AddCommand(verbs(run.Commands(env, options), move.Commands(env), remediation.Commands(env), remediation.MachineCommands(env),
		pause.Commands(env), pause.ClusterCommands(env), backup.Commands(env), logcmd.Verbs(env))...)
	cmd.AddCommand(logcmd.NewCmd(env), audit.NewCmd(env), doctor.NewCmd(env), ui.NewCmd(env), newCmdVersion(env))
	rejectUnknownArgs(cmd)
	if width, _, terminal := env.Size(env.Out); terminal {
		cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", width)))
		help := cmd.HelpFunc()
		cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
			cmd.Long = wrapParagraphs(cmd.Long, width)
			help(cmd, args)
		})
	}
	return cmd
}

// wrapParagraphs wraps each paragraph that has a line wider than width. It does not change indented
// paragraphs, because users paste them.
func wrapParagraphs(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		long := slices.ContainsFunc(strings.Split(p, "\n"), func(line string) bool { return cli.Width(line) > width })
		if long && !strings.ContainsAny("\n"+p, "\t") && !strings.Contains("\n"+p, "\n ") {
			paragraphs[i] = strings.Join(cli.Wrap(strings.Join(strings.Fields(p), " "), width), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// rejectUnknownArgs makes cobra's own commands reject unknown arguments. By default they print
// help, which a shell would run as its completion script.
func rejectUnknownArgs(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if of, rest, _ := root.Find(args); len(rest) > 0 {
					return kit.Unknown(of, rest)
				}
				return nil
			}
		case "completion":
			kit.RejectUnknown(cmd)
		}
	}
}

func verbs(nouns ...kit.Verbs) (out []*cobra.Command) {
	for _, v := range []struct{ verb, short string }{
		{"get", "List resources, or show the named ones"},
		{"describe", "Show a resource: its state, what it waits for, and its events"},
		{"watch", "Follow resources until they end"},
		{"logs", "Show the events of a resource, one per line"},
		{"create", "Create a move"},
		{"abort", "Abort a run, or a move or a remediation while it can still be undone"},
		{"decide", "Decide about a run or a move that waits for an operator"},
		{"pause", "Pause a cluster, a run or one of its tasks"},
		{"resume", "Resume a paused cluster, a run or one of its tasks"},
		{"migrate", "Adopt an edited manifest in an unfinished run"},
		{"hold", "Keep an unhealthy machine as it is, to examine it"},
		{"release", "Release a machine that is held or whose remediation is aborted"},
		{"backup", "Back up clusters or the event log to a folder"},
		{"restore", "Restore clusters or the event log from a backup"},
	} {
		var below []*cobra.Command
		for _, n := range nouns {
			if cmd := n[v.verb]; cmd != nil {
				below = append(below, cmd)
			}
		}
		out = append(out, kit.Verb(v.verb, v.short, below...))
	}
	return out
}

// withNoun adds the only noun that may be omitted: `decide NAME` means `decide run NAME`.
func withNoun(root *cobra.Command, args []string) []string {
	if len(args) < 2 || args[0] != "decide" || args[1] == "-h" || args[1] == "--help" {
		return args
	}
	if found, _, err := root.Find(args[:2]); err != nil || found.Name() != "decide" { // the noun is present
		return args
	}
	if strings.HasPrefix(args[1], "-") || len(args) > 2 && strings.HasPrefix(args[2], "-") {
		return append([]string{"decide", "run"}, args[1:]...)
	}
	return args
}

func versionLine(env *cli.Env) string {
	return fmt.Sprintf("scutectl %s (%s, %s/%s)", env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newCmdVersion(env *cli.Env) *cobra.Command {
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if format.Data() {
				return format.Print(env.Out, map[string]string{"version": env.Version, "goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			return env.Linef("%s", versionLine(env))
		},
	}
	format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}
