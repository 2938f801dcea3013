package move

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/output"
)

// completeTimeout bounds what a shell waits for.
const completeTimeout = 3 * time.Second

type getOptions struct {
	*Deps
	Names         []string
	AllNamespaces bool
	Format        output.Format
}

func newCmdGet(d *Deps) *cobra.Command {
	o := &getOptions{Deps: d}
	cmd := &cobra.Command{
		Use:     "get [NAME ...]",
		Aliases: []string{"list", "ls"},
		Short:   "List moves",
		Example: "  " + d.Env.Name + " move get -A\n  " + d.Env.Name + " move get prod -o jsonpath='{.status.phase}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "List the moves of all namespaces")
	o.Format.AddFlag(cmd.Flags(), "json", "yaml", "wide", "name", "jsonpath=...")
	return cmd
}

func (o *getOptions) run(ctx context.Context) error {
	if o.AllNamespaces && len(o.Names) > 0 {
		return cli.Usagef("a name and --all-namespaces exclude each other")
	}
	for _, name := range o.Names {
		if err := checkName("the name", name); err != nil {
			return err
		}
	}
	if err := o.Format.Validate(); err != nil {
		return err
	}
	source, cluster, log, err := o.open(ctx)
	if err != nil {
		return err
	}
	if log != nil {
		defer log.Close()
	}
	namespace := o.namespace(cluster)
	if o.AllNamespaces {
		namespace = ""
	}
	var list []*v1alpha1.Move
	if len(o.Names) == 0 {
		if list, err = source.List(ctx, namespace); err != nil {
			return err
		}
	}
	for _, name := range o.Names {
		m, err := source.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	return o.show(list, namespace)
}

func (o *getOptions) show(list []*v1alpha1.Move, namespace string) error {
	for i := range list {
		list[i].SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("Move"))
	}
	text, wide := o.Format.Text()
	switch {
	case !text && len(o.Names) == 1:
		return o.Format.Print(o.Env.Out, list[0])
	case !text && o.Format.Value == "name":
		for i := range list {
			if err := o.Format.Print(o.Env.Out, list[i]); err != nil {
				return err
			}
		}
		return nil
	case !text:
		all := &v1alpha1.MoveList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "MoveList"}}
		for _, m := range list {
			all.Items = append(all.Items, *m)
		}
		return o.Format.Print(o.Env.Out, all)
	case len(list) == 0 && namespace == "":
		o.Env.Notef("There are no moves.")
		return nil
	case len(list) == 0:
		o.Env.Notef("There are no moves in namespace %s.", namespace)
		return nil
	}
	return o.print(o.view().Table(list, namespace == "", wide))
}
