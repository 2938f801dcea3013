package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
)

type watchOptions[T any] struct {
	*Kit
	noun          *Noun[T]
	Name          string
	AllNamespaces bool
	Format        cli.Format
}

// Watch returns `watch NOUN [NAME]`.
func Watch[T any](env *cli.Env, n *Noun[T]) *cobra.Command {
	o := &watchOptions[T]{noun: n}
	cmd := &cobra.Command{
		Use: n.Name + " [NAME]", Aliases: n.Aliases(), Short: "Follow " + n.WithArticle + " until it ends, or all of a namespace",
		Long: strings.TrimSpace("Follow " + n.WithArticle + " until it ends; without a name, all " + n.Plural + " of the namespace, until all have ended. " +
			"On a\nterminal the view is redrawn in place; in a pipe each change is a line.\n\n" + n.WatchLong),
		Example: Examples(env, "$ watch "+n.Name+" prod -n fleet", "$ watch "+n.Plural+" -A"),
		Args:    Names(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Name = args[0]
			}
			return o.run(cmd.Context())
		},
	}
	o.Kit = New(env, cmd, n.Plural)
	cmd.ValidArgsFunction = Complete(o.Kit, n, 1)
	AllNamespacesVar(cmd, &o.AllNamespaces)
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *watchOptions[T]) run(ctx context.Context) error {
	if o.AllNamespaces && o.Name != "" {
		return cli.Usagef("a name and --all-namespaces cannot be used together")
	}
	p, err := Open(ctx, o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer p.Close()
	if o.Name != "" {
		return p.Follow(ctx, p.Key(o.Name), &o.Format)
	}
	namespace := p.Key("").Namespace
	if o.AllNamespaces {
		namespace = ""
	}
	return p.FollowAll(ctx, namespace, &o.Format)
}

// Follow shows an object until it is over, and returns an error with the exit status of its outcome. With a data format it prints the last state to
// the standard output, and everything else to the standard error.
func (p *Session[T]) Follow(ctx context.Context, key types.NamespacedName, format *cli.Format) error {
	n, draw := p.Noun, p.drawer(format, true, false)
	last, seen, err := followUntil(ctx, func(ctx context.Context, fn func([]T) bool) error {
		each := func(t T) bool { return fn([]T{p.copyOf(t)}) }
		err := p.Watch(ctx, key, each)
		if n.GetEnded == nil || !errors.Is(err, ErrNotFound) || ctx.Err() != nil {
			return err
		}
		return p.followLog(ctx, key, p.AddHints(ctx, key, err), each)
	}, func(list []T) bool { return n.IsFinished(list[0]) }, draw)
	if seen && key.Namespace == "" {
		key = n.Key(last[0])
	}
	err = p.AddHints(ctx, key, err)
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(fmt.Errorf("interrupted: %s; see %s", n.AfterWatch, p.Hint("watch", key)))
	case errors.Is(err, ErrNotDriven) && n.ContinueHint != nil:
		return fmt.Errorf("%w; %s", err, n.ContinueHint(p, key))
	case err != nil || !seen:
		return err
	}
	t := p.withLogDetails(ctx, last, format)[0]
	if n.Finish != nil {
		return n.Finish(ctx, p, t, format)
	}
	if format.Data() {
		if err := format.Print(p.Env.Out, n.Data([]T{t}, true)); err != nil {
			return err
		}
	}
	if n.HasFailed(t) {
		return cli.Failed() // the outcome is already printed
	}
	return nil
}

// followLog follows in the log an object that is not, or no longer, in the cluster.
func (p *Session[T]) followLog(ctx context.Context, key types.NamespacedName, notFound error, fn func(T) (enough bool)) error {
	t, err := p.Noun.GetEnded(ctx, p, key, notFound)
	if err != nil || fn(t) {
		return err
	}
	return p.LogSource().Watch(ctx, key, fn)
}

// FollowAll shows the objects of a namespace, "" for all, until all are over. It waits for the first one. It returns an error if an object failed.
func (p *Session[T]) FollowAll(ctx context.Context, namespace string, format *cli.Format) error {
	n, draw := p.Noun, p.drawer(format, false, namespace == "")
	open, told := make(map[types.NamespacedName]bool), false // open: objects that existed and are not known to have ended
	last, _, err := followUntil(ctx, func(ctx context.Context, fn func([]T) bool) error {
		return p.WatchAll(ctx, namespace, func(list []T) bool {
			copies := make([]T, len(list))
			for i, t := range list {
				copies[i] = p.copyOf(t)
			}
			return fn(copies)
		})
	}, func(list []T) bool {
		over := true
		for _, t := range list {
			open[n.Key(t)] = true
			over = over && n.IsFinished(t)
		}
		if len(open) == 0 && !told && !p.isStatic() {
			told = true
			p.Env.Notef("There are %s yet: waiting for the first one.", n.emptyMessage(namespace))
		}
		return over && len(open) > 0
	}, draw)
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: operations in progress continue"))
	case errors.Is(err, ErrNotDriven) && len(open) == 0:
		return fmt.Errorf("there are %s, and none can appear: no process writes to the log in %s", n.emptyMessage(namespace), p.Log.Where)
	case err != nil:
		return err
	}
	for _, t := range last {
		delete(open, n.Key(t))
	}
	if n.GetEnded != nil {
		for key := range open {
			ended, _, err := followUntil(ctx, func(ctx context.Context, fn func([]T) bool) error {
				return p.followLog(ctx, key, ErrGone, func(t T) bool { return fn([]T{p.copyOf(t)}) })
			}, func(list []T) bool { return n.IsFinished(list[0]) }, p.lines(format))
			if err != nil {
				return err
			}
			last = append(last, ended...)
		}
	}
	if format.Data() {
		if err := format.Print(p.Env.Out, n.Data(p.withLogDetails(ctx, last, format), false)); err != nil {
			return err
		}
	}
	for _, t := range last {
		if n.HasFailed(t) {
			return cli.Failed() // the outcome is already printed
		}
	}
	return nil
}

// isStatic reports whether nothing can change because the log is in a folder without a running process.
func (p *Session[T]) isStatic() bool { return p.Cluster == nil && p.Log.Static }

func (p *Session[T]) copyOf(t T) T {
	if p.Noun.Copy == nil {
		return t
	}
	return p.Noun.Copy(t)
}

// withLogDetails adds what only the log has, for -o json, yaml and jsonpath. A table, also a wide one, shows what the resource has.
func (p *Session[T]) withLogDetails(ctx context.Context, list []T, format *cli.Format) []T {
	if format.Data() && p.Noun.AddLogDetails != nil {
		for i := range list {
			list[i] = p.Noun.AddLogDetails(ctx, p, list[i])
		}
	}
	return list
}
