package kit

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// CompleteTimeout bounds what a shell waits for.
const CompleteTimeout = 3 * time.Second

// Complete offers the names of the things that there are, with their phases; up to a number of them, -1 is any.
func Complete[T any](k *Kit, n *Noun[T], limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if limit >= 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeFrom(cmd.Context(), k, n, func(ctx context.Context, p *Place[T]) (names []string) {
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

// completeFrom offers what is read from a place. A place that cannot be read offers nothing.
func completeFrom[T any](ctx context.Context, k *Kit, n *Noun[T], read func(context.Context, *Place[T]) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, CompleteTimeout)
	defer cancel()
	p, err := Open(ctx, k, n)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer p.Close()
	return read(ctx, p), cobra.ShellCompDirectiveNoFileComp
}

// TaskVar adds the option --task, with the tasks of the thing that is named.
func TaskVar[T any](cmd *cobra.Command, k *Kit, n *Noun[T], task *string, usage string) {
	cmd.Flags().StringVar(task, "task", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("task", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || n.Tasks == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeFrom(cmd.Context(), k, n, func(ctx context.Context, p *Place[T]) []string {
			t, err := p.Get(ctx, p.Key(args[len(args)-1]))
			if err != nil {
				return nil
			}
			return n.Tasks(t)
		})
	})
}
