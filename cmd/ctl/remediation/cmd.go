package remediation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/remediations"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/source"
	"scute.dev/cmd/ctl/term"
)

// Deps is what all commands about remediations share.
type Deps struct {
	Env   *cli.Env
	Flags *reach.Flags
}

// NewCmd is `scutectl remediation`.
func NewCmd(env *cli.Env) *cobra.Command {
	d := &Deps{Env: env, Flags: reach.New()}
	cmd := &cobra.Command{
		Use:     "remediation",
		Aliases: []string{"remediations", "rem", "srem"},
		Short:   "See what becomes of unhealthy machines, and hold, release or abort it",
		Long: `See what becomes of unhealthy machines, and hold, release or abort it. A remediation has the name of its machine.

Nothing is remediated unless a RepairPolicy selects the cluster.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	d.Flags.AddFlags(cmd.PersistentFlags())
	d.Flags.AddNamespace(cmd.PersistentFlags())
	cmd.PersistentFlags().Lookup("namespace").Usage = "Namespace of the machines; the context's own if empty"
	cmd.AddCommand(newCmdGet(d), newCmdDescribe(d), newCmdWatch(d), newCmdHold(d), newCmdRelease(d), newCmdAbort(d))
	return cmd
}

// opened is where remediations are read from, and the way to the log if it was taken.
type opened struct {
	remediations.Source
	cluster *reach.Cluster // nil for a log alone
	log     *reach.Log     // nil while nobody needs it
}

func (o *opened) Close() {
	if o.log != nil {
		_ = o.log.Close()
	}
}

// open finds where remediations are: in the log that the user named, or else in the cluster.
func (d *Deps) open(ctx context.Context) (*opened, error) {
	if err := d.Flags.Validate(); err != nil {
		return nil, err
	}
	if d.Flags.LogAlone() {
		log, err := d.Flags.Log(ctx, d.Env.Err)
		if err != nil {
			return nil, err
		}
		return &opened{Source: d.logged(log), log: log}, nil
	}
	cluster, err := d.Flags.ClusterOrLog()
	if err != nil {
		return nil, err
	}
	return d.inCluster(cluster), nil
}

func (d *Deps) inCluster(cluster *reach.Cluster) *opened {
	return &opened{cluster: cluster, Source: remediations.InCluster(cluster, func(err error) {
		d.Env.Notef("%s: the connection broke, trying again: %v", d.Env.Name, err)
	})}
}

func (d *Deps) logged(log *reach.Log) *remediations.Logged {
	progress := d.Env.Progress()
	l := remediations.InLog(log)
	l.Replaying, l.Replayed = func(seq uint64) { progress.Showf("reading the log: %d commits", seq) }, progress.Done
	return l
}

// reachLog takes the way to the log, if it was not taken yet.
func (d *Deps) reachLog(ctx context.Context, at *opened) error {
	if at.log != nil {
		return nil
	}
	log, err := d.Flags.Log(ctx, d.Env.Err)
	at.log = log
	return err
}

// find reads one. Its resource goes with its machine: of one that has ended, the log has the end.
func (d *Deps) find(ctx context.Context, at *opened, key types.NamespacedName) (*v1alpha1.SurgeRemediation, error) {
	r, err := at.Get(ctx, key)
	if err == nil || at.cluster == nil || !errors.Is(err, source.ErrNotFound) {
		return r, err
	}
	if d.reachLog(ctx, at) != nil {
		return nil, fmt.Errorf("%w; of one that has ended the log knows, and it could not be reached: `%s doctor` says why", err, d.Env.Name)
	}
	ended, logErr := d.logged(at.log).Get(ctx, key)
	if logErr != nil {
		return nil, fmt.Errorf("%w, and none in the log: machines that are well have none; `%s get machines` shows all", err, d.Env.Name)
	}
	return ended, nil
}

// key of a remediation: in a log alone the namespace is only what the user said, for there is no context.
func (d *Deps) key(at *opened, name string) types.NamespacedName {
	if at.cluster == nil {
		return types.NamespacedName{Namespace: d.Flags.Namespace, Name: name}
	}
	return types.NamespacedName{Namespace: at.cluster.Namespace, Name: name}
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

func oneName(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return cli.Usagef("%s needs the name of a machine", cmd.CommandPath())
	case len(args) > 1:
		return cli.Usagef("%s takes one name, not %d", cmd.CommandPath(), len(args))
	}
	return checkName(args[0])
}

// checkName holds a name against the rule of the API server, before anything is sent.
func checkName(name string) error {
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		return cli.Usagef("the name %q is not one that Kubernetes takes: %s", name, problem)
	}
	return nil
}

// completeTimeout bounds what a shell waits for.
const completeTimeout = 3 * time.Second

// complete offers the names of the machines that there are remediations of.
func (d *Deps) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	at, err := d.open(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer at.Close()
	list, err := at.List(ctx, d.key(at, "").Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name + "\t" + string(r.Status.Phase)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
