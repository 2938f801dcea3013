package run

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/runs"
)

type getOptions struct {
	*deps
	Names         []string
	AllNamespaces bool
	Format        output.Format
}

func newCmdGet(env *cli.Env, options Options) *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:     "run [NAME ...]",
		Aliases: aliases(),
		Short:   "List runs",
		Long: `List runs. Of a name that was used again it is the newest.

With -o json one run is an object with its name, phase, runID, startedAt, finishedAt and all its tasks; several are
the items of a list.`,
		Example: "  " + env.Name + " get runs -A\n  " + env.Name + " get run create-prod --local -o jsonpath='{.phase}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return o.run(cmd.Context())
		},
	}
	o.deps = newDeps(env, cmd, options)
	cmd.ValidArgsFunction = o.complete
	cmd.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "List the runs of all namespaces")
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
	var list []*runs.Run
	if len(o.Names) == 0 {
		if list, err = at.source.List(ctx, namespace); err != nil {
			return err
		}
	}
	for _, name := range o.Names {
		r, err := at.source.Get(ctx, o.key(at, name))
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	if text, _ := o.Format.Text(); !text && o.Format.Value != "name" {
		for i := range list {
			list[i] = o.whole(ctx, at, list[i])
		}
	}
	return o.show(list, namespace)
}

func (o *getOptions) show(list []*runs.Run, namespace string) error {
	text, wide := o.Format.Text()
	switch {
	case o.Format.Value == "name":
		for _, r := range list {
			if _, err := fmt.Fprintf(o.Env.Out, "workflowrun.scute.dev/%s\n", r.Name); err != nil {
				return err
			}
		}
		return nil
	case !text && len(o.Names) == 1:
		return o.Format.PrintValue(o.Env.Out, list[0].Report())
	case !text:
		items := make([]runs.Report, len(list))
		for i, r := range list {
			items[i] = r.Report()
		}
		return o.Format.PrintValue(o.Env.Out, map[string]any{"items": items})
	case len(list) == 0 && namespace == "":
		o.Env.Notef("There are no runs.")
		return nil
	case len(list) == 0:
		o.Env.Notef("There are no runs in namespace %s.", namespace)
		return nil
	}
	return o.print(o.view().RunTable(list, namespace == "", wide))
}
