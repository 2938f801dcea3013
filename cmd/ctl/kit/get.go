package kit

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
)

type listOptions[T any] struct {
	*Kit
	noun          *Noun[T]
	Names         []string
	AllNamespaces bool
	Watch         bool
	Format        cli.Format
}

// Get returns `get NOUN [NAME ...]`.
func Get[T any](env *cli.Env, n *Noun[T]) *cobra.Command {
	o, cmd := newList(env, n, " [NAME ...]", -1)
	cmd.Short = "List " + n.Plural
	cmd.Long = strings.TrimSpace("List " + n.Plural + ", or the named ones. " + n.GetLong)
	cmd.Example = Examples(env, "$ get "+n.Plural+" -A -o wide", "$ get "+n.Name+" prod -n fleet -o json", "$ get "+n.Plural+" --watch")
	o.addAt(cmd)
	cmd.Flags().BoolVarP(&o.Watch, "watch", "w", false, "Follow them, as watch does")
	o.Format.AddFlag(cmd, "json", "yaml", "wide", "name", "jsonpath=...")
	return cmd
}

// newList returns a command with what get and watch have in common. limit is the maximum number of
// names; -1 means no limit.
func newList[T any](env *cli.Env, n *Noun[T], arguments string, limit int) (*listOptions[T], *cobra.Command) {
	o := &listOptions[T]{noun: n}
	cmd := &cobra.Command{Use: n.Name + arguments, Aliases: n.Aliases(), Args: Names(limit), RunE: WithNames(&o.Names, o.run)}
	o.Kit = New(env, cmd, n.Plural)
	cmd.ValidArgsFunction = Complete(o.Kit, n, limit)
	AllNamespacesVar(cmd, &o.AllNamespaces)
	return o, cmd
}

// AllNamespacesVar adds --all-namespaces.
func AllNamespacesVar(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVarP(all, "all-namespaces", "A", false, "In all namespaces")
}

func (o *listOptions[T]) run(ctx context.Context) error {
	if o.AllNamespaces && len(o.Names) > 0 {
		return cli.Usagef("a name and --all-namespaces cannot be used together")
	}
	if o.Watch && o.At.IsSet() {
		return cli.Usagef("--watch and --at cannot be used together: the past does not change")
	}
	if o.Watch && len(o.Names) > 1 {
		return cli.Usagef("--watch takes one name, not %d", len(o.Names))
	}
	p, err := Open(ctx, o.Kit, o.noun)
	if err != nil {
		return err
	}
	defer p.Close()
	if o.Watch && len(o.Names) == 1 {
		return p.Follow(ctx, p.Key(o.Names[0]), &o.Format)
	}
	namespace := p.Key("").Namespace
	if o.AllNamespaces {
		namespace = ""
	}
	if o.Watch {
		return p.FollowAll(ctx, namespace, &o.Format)
	}
	list, err := o.list(ctx, p, namespace)
	if err != nil {
		return err
	}
	return o.show(list, namespace)
}

func (o *listOptions[T]) list(ctx context.Context, p *Session[T], namespace string) (list []T, err error) {
	if len(o.Names) == 0 {
		list, err = p.List(ctx, namespace)
	}
	for _, name := range o.Names {
		t, err := p.find(ctx, p.Key(name))
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return p.withLogDetails(ctx, list, &o.Format), err
}

func (o *listOptions[T]) show(list []T, namespace string) error {
	switch {
	case o.Format.Data():
		return o.Format.Print(o.Env.Out, o.noun.Data(list, len(o.Names) == 1))
	case o.Format.Value == "name":
		for _, t := range list {
			if err := o.Env.Linef("%s/%s", o.noun.Resource, o.noun.Key(t).Name); err != nil {
				return err
			}
		}
		return nil
	case len(list) == 0:
		o.Env.Notef("There are %s.", o.noun.emptyMessage(namespace))
		return nil
	}
	return o.Print(o.noun.Table(o.View(), list, namespace == "", o.Format.Value == "wide"))
}
