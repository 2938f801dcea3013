package remediation

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

type options struct {
	*kit.Kit
	names         []string
	cluster       string
	allNamespaces bool
	all           bool
	live          bool
	watch         bool
	describe      bool
	format        cli.Format
}

// MachineCommands returns the commands about machines, by verb.
func MachineCommands(env *cli.Env) kit.Verbs {
	get := &options{}
	verbs := kit.Verbs{
		"get": newCmdMachines(env, get, "Show machines: health, marks, decisions, and what happens next", "",
			"$ get machines -A --watch", "$ get machines -n fleet --cluster prod -o json"),
		"describe": newCmdMachines(env, &options{describe: true}, "Show a machine with its owner, and the decision about it", "",
			"$ describe machine prod-control-plane-x7k2p -n fleet"),
		"watch": newCmdMachines(env, &options{watch: true}, "Show machines again whenever they change, until interrupted",
			" On a terminal they are redrawn in place; in a pipe each change is a line.", "$ watch machines -A", "$ watch machines -n fleet --cluster prod"),
	}
	verbs["get"].Flags().BoolVarP(&get.watch, "watch", "w", false, "Follow them, as watch does")
	get.format.AddFlag(verbs["get"], "json", "yaml", "wide", "jsonpath=...")
	return verbs
}

// newCmdMachines returns a command about machines: about one machine if it describes.
func newCmdMachines(env *cli.Env, o *options, short, more string, examples ...string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "machine [MACHINE ...]", Aliases: []string{"machines", "ma"}, Args: kit.Names(-1), RunE: kit.WithNames(&o.names, o.run),
		Short: short, Example: kit.Examples(env, examples...), ValidArgsFunction: o.complete,
		Long: short + "." + more + `

The command reads the objects of Cluster API and scute, and the event log for the rules and times of decisions. If the log cannot
be reached, it prints a note and shows only the objects. It needs neither a RepairPolicy nor scute's kinds.

Running workers without a mark are counted, and listed only with --all.`,
	}
	o.Kit = kit.New(env, cmd, "machines")
	f := cmd.Flags()
	f.BoolVar(&o.live, "live", false, "Show only the objects, and do not read the event log")
	if o.describe {
		cmd.Use, cmd.Args = "machine MACHINE", kit.OneName("a machine")
		return cmd
	}
	kit.AllNamespacesVar(cmd, &o.allNamespaces)
	f.StringVar(&o.cluster, "cluster", "", "Show this cluster only")
	f.BoolVar(&o.all, "all", false, "List all workers")
	return cmd
}

// complete returns the names of machines for completion by a shell.
func (o *options) complete(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	cluster, err := o.Flags.Cluster()
	if err == nil && !(o.describe && len(args) > 0) {
		ctx, cancel := context.WithTimeout(cmd.Context(), kit.CompleteTimeout)
		defer cancel()
		list := &clusterv1.MachineList{}
		_ = cluster.Client.List(ctx, list, client.InNamespace(cluster.Namespace)) // without a list there is nothing to complete
		for i := range list.Items {
			if m := &list.Items[i]; !slices.Contains(args, m.Name) {
				names = append(names, m.Name+"\t"+m.Status.Phase)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (o *options) validate() error {
	if o.cluster != "" {
		if err := kit.CheckName("--cluster", o.cluster); err != nil {
			return err
		}
	}
	if text, _ := o.format.Text(); o.watch && !text {
		return cli.Usagef("--watch shows text: leave -o %s out", o.format.Value)
	}
	if o.Flags.Local {
		return cli.Usagef("machines are in a management cluster, and a log of local runs has none: leave out --local; --log and --nats name the log of a daemon")
	}
	if o.live && o.Flags.LogOnly() {
		return cli.Usagef("--live reads no log: leave --log and --nats out")
	}
	return o.Flags.Check()
}

func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	cluster, err := o.Flags.Cluster()
	if err != nil {
		return err
	}
	r := &reader{options: o, cluster: cluster, namespace: cluster.Namespace}
	defer r.close()
	if o.allNamespaces {
		r.namespace = ""
	}
	if o.watch {
		return o.follow(ctx, r)
	}
	p, err := r.read(ctx)
	if err != nil {
		return err
	}
	return o.show(p)
}
