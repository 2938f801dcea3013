package move

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/moves"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
)

// Deps is what all commands about moves share.
type Deps struct {
	Env   *cli.Env
	Flags *reach.Flags
}

// NewCmd is `scutectl move`.
func NewCmd(env *cli.Env) *cobra.Command {
	d := &Deps{Env: env, Flags: reach.New()}
	cmd := &cobra.Command{
		Use:     "move",
		Aliases: []string{"moves", "mv"},
		Short:   "Move clusters to another management cluster",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	d.Flags.AddFlags(cmd.PersistentFlags())
	d.Flags.AddNamespace(cmd.PersistentFlags())
	cmd.AddCommand(newCmdCreate(d), newCmdGet(d), newCmdDescribe(d), newCmdWatch(d), newCmdAbort(d), newCmdResolve(d), newCmdAbandon(d))
	return cmd
}

// open finds where Moves are read from: the log that the user named, or else the cluster. cluster is nil for a log.
func (d *Deps) open(ctx context.Context) (source moves.Source, cluster *reach.Cluster, log *reach.Log, err error) {
	if err := d.Flags.Validate(); err != nil {
		return nil, nil, nil, err
	}
	if d.Flags.LogAlone() {
		log, err := d.Flags.Log(ctx, d.Env.Err)
		if err != nil {
			return nil, nil, nil, err
		}
		return d.logged(log), nil, log, nil
	}
	cluster, err = d.Flags.ClusterOrLog()
	if err != nil {
		return nil, nil, nil, err
	}
	return d.inCluster(cluster), cluster, nil, nil
}

func (d *Deps) inCluster(cluster *reach.Cluster) moves.Source {
	return moves.InCluster(cluster, func(err error) {
		d.Env.Notef("%s: the connection broke, trying again: %v", d.Env.Name, err)
	})
}

func (d *Deps) logged(log *reach.Log) *moves.Logged {
	progress := d.Env.Progress()
	l := moves.InLog(log)
	l.Replaying, l.Replayed = func(seq uint64) { progress.Showf("reading the log: %d commits", seq) }, progress.Done
	return l
}

// namespace of the command: in a log alone only what the user said, for there is no context.
func (d *Deps) namespace(cluster *reach.Cluster) string {
	if cluster == nil {
		return d.Flags.Namespace
	}
	return cluster.Namespace
}

func (d *Deps) key(cluster *reach.Cluster, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: d.namespace(cluster), Name: name}
}

// view is how things are shown on the standard output now.
func (d *Deps) view() show.View {
	return show.View{Paint: term.Paint{On: d.Env.Colored(d.Env.Out)}, Width: d.Env.Width(), Now: d.Env.Now()}
}

func (d *Deps) print(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(d.Env.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func oneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return cli.Usagef("%s needs the name of %s", cmd.CommandPath(), what)
		case len(args) > 1:
			return cli.Usagef("%s takes one name, not %d", cmd.CommandPath(), len(args))
		}
		return checkName("the name", args[0])
	}
}

// checkName holds a name against the rule of the API server, before anything is sent.
func checkName(what, name string) error {
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		return cli.Usagef("%s %q is not one that Kubernetes takes: %s", what, name, problem)
	}
	return nil
}

// complete offers the names of the Moves that there are.
func (d *Deps) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	source, cluster, log, err := d.open(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if log != nil {
		defer log.Close()
	}
	list, err := source.List(ctx, d.namespace(cluster))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name + "\t" + string(list[i].Status.Phase)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
