package remediation

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/output"
)

type getOptions struct {
	*Deps
	Names         []string
	AllNamespaces bool
	Format        output.Format
}

func newCmdGet(d *Deps) *cobra.Command {
	o := &getOptions{Deps: d}
	cmd := &cobra.Command{
		Use:     "get [MACHINE ...]",
		Aliases: []string{"list", "ls"},
		Short:   "List remediations",
		Long: `List remediations, by their machines. One that has ended goes with its machine; the log keeps it: name it, or list those
of a log with --log or --nats.`,
		Example: "  " + d.Env.Name + " remediation get -A -o wide\n  " + d.Env.Name + " remediation get prod-cp-x7k2p -o jsonpath='{.status.phase}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return o.run(cmd.Context())
		},
		ValidArgsFunction: d.complete,
	}
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "List the remediations of all namespaces")
	o.Format.AddFlag(cmd.Flags(), "json", "yaml", "wide", "name", "jsonpath=...")
	return cmd
}

func (o *getOptions) run(ctx context.Context) error {
	if o.AllNamespaces && len(o.Names) > 0 {
		return cli.Usagef("a name and --all-namespaces exclude each other")
	}
	for _, name := range o.Names {
		if err := checkName(name); err != nil {
			return err
		}
	}
	if err := o.Format.Validate(); err != nil {
		return err
	}
	at, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer at.Close()
	namespace := o.key(at, "").Namespace
	if o.AllNamespaces {
		namespace = ""
	}
	var list []*v1alpha1.SurgeRemediation
	if len(o.Names) == 0 {
		if list, err = at.List(ctx, namespace); err != nil {
			return err
		}
	}
	for _, name := range o.Names {
		r, err := o.find(ctx, at, o.key(at, name))
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	return o.show(list, namespace)
}

func (o *getOptions) show(list []*v1alpha1.SurgeRemediation, namespace string) error {
	for _, r := range list {
		r.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("SurgeRemediation"))
	}
	text, wide := o.Format.Text()
	switch {
	case !text && len(o.Names) == 1:
		return o.Format.Print(o.Env.Out, list[0])
	case o.Format.Value == "name":
		for _, r := range list {
			if err := o.Format.Print(o.Env.Out, r); err != nil {
				return err
			}
		}
		return nil
	case !text:
		all := &v1alpha1.SurgeRemediationList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "SurgeRemediationList"}}
		for _, r := range list {
			all.Items = append(all.Items, *r)
		}
		return o.Format.Print(o.Env.Out, all)
	case len(list) == 0 && namespace == "":
		o.Env.Notef("There are no remediations.")
		return nil
	case len(list) == 0:
		o.Env.Notef("There are no remediations in namespace %s.", namespace)
		return nil
	}
	return o.print(o.view().RemediationTable(list, namespace == "", wide))
}
