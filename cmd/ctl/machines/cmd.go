package machines

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fleet"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
)

type options struct {
	env           *cli.Env
	flags         *reach.Flags
	cluster       string
	allNamespaces bool
	workers       bool
	format        output.Format
}

// NewCmd is `scutectl machines`.
func NewCmd(env *cli.Env) *cobra.Command {
	o := &options{env: env, flags: reach.New()}
	cmd := &cobra.Command{
		Use:     "machines [CLUSTER]",
		Aliases: []string{"machine"},
		Short:   "Show the machines of each control plane: health, marks, decisions, and etcd's quorum",
		Long: `Show the machines of each control plane: health, marks, decisions, and etcd's quorum.

  ✓ well   ! something is not   ✗ unhealthy   ▶ starting   ◀ being deleted

READY is the Node's, ETCD the condition of its member, PODS those of API server, controller manager, scheduler and etcd:
✓ True, ✗ False, ? Unknown, · not said. They are Cluster API's conditions, which do not say that a member answers: who
does is known of control planes that scute has looked at, because something is wrong there.

Workers are shown where one of their machines is not well, or all with --workers. It needs no RepairPolicy, and none of
scute's kinds.`,
		Example: "  " + env.Name + " machines -A\n  " + env.Name + " machines prod -n fleet -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.cluster = args[0]
			}
			return o.run(cmd.Context(), len(args) > 0)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.flags.AddFlags(cmd.Flags())
	o.flags.AddNamespace(cmd.Flags())
	cmd.Flags().Lookup("namespace").Usage = "Namespace of the clusters; the context's own if empty"
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show the clusters of all namespaces")
	cmd.Flags().BoolVar(&o.workers, "workers", false, "Show all workers too")
	o.format.AddFlag(cmd.Flags(), "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *options) run(ctx context.Context, named bool) error {
	if named && o.allNamespaces {
		return cli.Usagef("a name and --all-namespaces exclude each other")
	}
	if named {
		for _, problem := range validation.IsDNS1123Subdomain(o.cluster) {
			return cli.Usagef("the name %q is not one that Kubernetes takes: %s", o.cluster, problem)
		}
	}
	if o.flags.LogAlone() {
		return cli.Usagef("machines are looked at in a management cluster: --log and --nats do not lead to one")
	}
	if err := o.format.Validate(); err != nil {
		return err
	}
	if err := o.flags.Validate(); err != nil {
		return err
	}
	cluster, err := o.flags.Cluster()
	if err != nil {
		return err
	}
	namespace := cluster.Namespace
	if o.allNamespaces {
		namespace = ""
	}
	objects, err := fleet.Read(ctx, cluster, namespace)
	if err != nil {
		return err
	}
	list := objects.Join(o.cluster, o.workers)
	if named && len(list) == 0 {
		return fmt.Errorf("cluster %s in namespace %s: there is no such cluster on %s", o.cluster, namespace, cluster.Config.Host)
	}
	if err := o.show(list, objects, namespace); err != nil {
		return err
	}
	if len(objects.Withheld) > 0 {
		o.env.Notef("You may not list %s: what they say is missing above.", strings.Join(objects.Withheld, ", "))
	}
	return nil
}

func (o *options) show(list []*fleet.Cluster, objects *fleet.Objects, namespace string) error {
	if o.format.Value != "" {
		return o.format.PrintValue(o.env.Out, map[string]any{"clusters": append([]*fleet.Cluster{}, list...)})
	}
	switch {
	case len(list) == 0 && namespace == "":
		o.env.Notef("There are no clusters.")
		return nil
	case len(list) == 0:
		o.env.Notef("There are no clusters in namespace %s.", namespace)
		return nil
	}
	v := show.View{Paint: term.Paint{On: o.env.Colored(o.env.Out)}, Width: o.env.Width(), Now: o.env.Now()}
	for _, line := range v.Clusters(list, objects.Served) {
		if _, err := fmt.Fprintln(o.env.Out, line); err != nil {
			return err
		}
	}
	return nil
}
