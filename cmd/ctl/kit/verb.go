package kit

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
)

// Verb returns a command with a subcommand for each noun.
func Verb(use, short string, nouns ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " NOUN", Short: short,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name what to %s: %s", cmd.Name(), strings.Join(subcommands(cmd), ", "))
			}
			return Unknown(cmd, args)
		},
		// The error must be about the unknown noun, not about a flag that only nouns define.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
	}
	cmd.AddCommand(nouns...)
	return cmd
}

func subcommands(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// WithName stores the argument in name and calls run.
func WithName(name *string, run func(context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		*name = args[0]
		return run(cmd.Context())
	}
}

// WithNames stores the arguments in names and calls run.
func WithNames(names *[]string, run func(context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		*names = args
		return run(cmd.Context())
	}
}

// Command sets what all commands about one object have in common. run receives the object's name.
func Command[T any](env *cli.Env, n *Noun[T], cmd *cobra.Command, run func(ctx context.Context, name string) error) *Kit {
	cmd.Use, cmd.Aliases, cmd.Args = n.Name+" NAME"+cmd.Use, n.Aliases(), OneName(n.WithArticle)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0]) }
	k := New(env, cmd, n.Plural)
	cmd.ValidArgsFunction = Complete(k, n, 1)
	return k
}

// Examples formats the example lines of a help text. It replaces a leading $ with the program's
// name.
func Examples(env *cli.Env, lines ...string) string {
	out := slices.Clone(lines)
	for i, line := range out {
		if rest, ok := strings.CutPrefix(line, "$ "); ok {
			line = env.Name + " " + rest
		}
		out[i] = "  " + line
	}
	return strings.Join(out, "\n")
}

// Group returns a command whose subcommands are not nouns, for example log.
func Group(use, short, long string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long}
	RejectUnknown(cmd)
	cmd.AddCommand(below...)
	return cmd
}

// RejectUnknown makes a command print its help if it has no arguments, and reject an unknown
// subcommand.
func RejectUnknown(cmd *cobra.Command) {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return Unknown(cmd, args)
	}
}

// Unknown returns an error for an unknown subcommand, or for a noun that the user wrote before its
// verb.
func Unknown(cmd *cobra.Command, args []string) error {
	for _, verb := range slices.Concat(args[1:min(2, len(args))], []string{"get"}) {
		if noun, _, err := cmd.Find([]string{verb, args[0]}); err == nil && noun.HasParent() && noun.Parent().Parent() == cmd {
			return cli.Usagef("unknown command %q for %q: the verb comes first, as in `%s %s %s`", args[0], cmd.CommandPath(), cmd.CommandPath(), verb, args[0])
		}
	}
	return cli.Usagef("unknown command %q for %q%s", args[0], cmd.CommandPath(), cli.Suggest(args[0], subcommands(cmd)))
}

// Verbs contains the commands of a noun by verb.
type Verbs map[string]*cobra.Command

const completeTimeout = 3 * time.Second

// Complete returns a shell completion for at most limit names (-1 means no limit). The description
// of a name is the phase of the object.
func Complete[T any](k *Kit, n *Noun[T], limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if limit >= 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeFrom(cmd.Context(), k, n, func(ctx context.Context, p *Session[T]) (names []string) {
			list, err := p.List(ctx, p.Key("").Namespace)
			if err != nil {
				return nil
			}
			for _, t := range list {
				if name := n.Key(t).Name; !slices.Contains(args, name) {
					names = append(names, name+"\t"+n.Phase(t))
				}
			}
			return names
		})
	}
}

// completeFrom returns the completions from read, or none if the cluster or the log cannot be
// reached.
func completeFrom[T any](ctx context.Context, k *Kit, n *Noun[T], read func(context.Context, *Session[T]) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	p, err := Open(ctx, k, n)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer p.Close()
	return read(ctx, p), cobra.ShellCompDirectiveNoFileComp
}

// TaskVar adds --task, and completes its value with the tasks of the object that the arguments
// name.
func TaskVar[T any](cmd *cobra.Command, k *Kit, n *Noun[T], task *string, usage string) {
	cmd.Flags().StringVar(task, "task", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("task", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || n.Tasks == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeFrom(cmd.Context(), k, n, func(ctx context.Context, p *Session[T]) []string {
			t, err := p.Get(ctx, p.Key(args[len(args)-1]))
			if err != nil {
				return nil
			}
			return n.Tasks(t)
		})
	})
}
