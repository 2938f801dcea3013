package kit

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// CompleteTimeout is the timeout of a shell completion.
const CompleteTimeout = 3 * time.Second

// Complete returns a function that completes the names of at most limit objects; -1 is unlimited. Each name has its phase as the description.
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

// completeFrom returns the completions that read returns. It returns none if the cluster or the log cannot be read.
func completeFrom[T any](ctx context.Context, k *Kit, n *Noun[T], read func(context.Context, *Session[T]) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, CompleteTimeout)
	defer cancel()
	p, err := Open(ctx, k, n)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer p.Close()
	return read(ctx, p), cobra.ShellCompDirectiveNoFileComp
}

// TaskVar adds the option --task. It is completed with the tasks of the object that the arguments name.
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
