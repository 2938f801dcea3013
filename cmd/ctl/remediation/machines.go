package remediation

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

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
	return kit.Verbs{"get": newCmdGet(env), "describe": newCmdDescribe(env), "watch": newCmdWatch(env)}
}

const legend = `The command reads the objects of Cluster API and scute, and the event log for the rules and times of decisions. If the log cannot
be reached, it prints a note and shows only the objects. It needs neither a RepairPolicy nor scute's kinds.

Running workers without a mark are counted, and listed only with --all.`

func newCmdGet(env *cli.Env) *cobra.Command {
	o := &options{}
	cmd := o.command(env, "[MACHINE ...]", kit.Names(-1), &cobra.Command{
		Short:   "Show machines: health, marks, decisions, and what happens next",
		Long:    "Show machines: health, marks, decisions, and what happens next.\n\n" + legend,
		Example: kit.Examples(env, "$ get machines -A --watch", "$ get machines -n fleet --cluster prod -o json"),
	})
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Follow them, as watch does")
	o.clusterFlags(cmd)
	o.format.AddFlag(cmd, "json", "yaml", "wide", "jsonpath=...")
	return cmd
}

func newCmdDescribe(env *cli.Env) *cobra.Command {
	o := &options{describe: true}
	return o.command(env, "MACHINE", kit.OneName("a machine"), &cobra.Command{
		Short:   "Show a machine with its owner, and the decision about it",
		Long:    "Show a machine with its owner, and the decision about it.\n\n" + legend,
		Example: kit.Examples(env, "$ describe machine prod-control-plane-x7k2p -n fleet"),
	})
}

func newCmdWatch(env *cli.Env) *cobra.Command {
	o := &options{watch: true}
	cmd := o.command(env, "[MACHINE ...]", kit.Names(-1), &cobra.Command{
		Short: "Follow machines until interrupted",
		Long: "Show machines again whenever they change, until interrupted. On a terminal they are redrawn in place; in a pipe each change\nis a line.\n\n" +
			legend,
		Example: kit.Examples(env, "$ watch machines -A", "$ watch machines -n fleet --cluster prod"),
	})
	o.clusterFlags(cmd)
	return cmd
}

// command completes the definition of a command about machines.
func (o *options) command(env *cli.Env, use string, args cobra.PositionalArgs, cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Aliases, cmd.Args = "machine "+use, []string{"machines", "ma"}, args
	cmd.RunE = kit.WithNames(&o.names, o.run)
	o.Kit = kit.New(env, cmd, "machines")
	cmd.ValidArgsFunction = o.complete
	cmd.Flags().BoolVar(&o.live, "live", false, "Show only the objects, and do not read the event log")
	return cmd
}

// clusterFlags adds the options that select machines.
func (o *options) clusterFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	kit.AllNamespacesVar(cmd, &o.allNamespaces)
	f.StringVar(&o.cluster, "cluster", "", "Show this cluster only")
	f.BoolVar(&o.all, "all", false, "List all workers")
}

// complete returns the names of machines for completion by a shell.
func (o *options) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	cluster, err := o.Flags.Cluster()
	if err != nil || o.describe && len(args) > 0 {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), kit.CompleteTimeout)
	defer cancel()
	objects, err := Read(ctx, cluster, cluster.Namespace)
	if err != nil {
		return nil, none
	}
	var names []string
	for i := range objects.Machines {
		if m := &objects.Machines[i]; !slices.Contains(args, m.Name) {
			names = append(names, m.Name+"\t"+m.Status.Phase)
		}
	}
	return names, none
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
