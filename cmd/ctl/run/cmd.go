package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/aggregate"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/runs"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
)

// deps is what every command about runs has at hand.
type deps struct {
	Env   *cli.Env
	Flags *reach.Flags
	Options
}

// Options are for builds other than the real one.
type Options struct {
	// WrapLog stands between local runs and their log, for fault points; nil is nothing.
	WrapLog func(aggregate.Log) aggregate.Log
}

// Commands are those about runs: some of their own, some below a verb.
func Commands(env *cli.Env, o Options) []*cobra.Command {
	verb := func(use, short string, below *cobra.Command) *cobra.Command {
		cmd := &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		}
		cmd.AddCommand(below)
		return cmd
	}
	return []*cobra.Command{
		newCmdRun(env, o),
		verb("get", "List runs", newCmdGet(env, o)),
		verb("describe", "Show where a run stands, what it waits for, and what happened", newCmdDescribe(env, o)),
		verb("watch", "Follow a run until it rests", newCmdWatch(env, o)),
		verb("pause", "Let a run start nothing more, or hold one of its tasks", newCmdPause(env, o)),
		verb("resume", "Go on with a run, or release one of its tasks", newCmdResume(env, o)),
		newCmdDecide(env, o),
		newCmdMigrate(env, o),
	}
}

// names of the resource below a verb.
func aliases() []string { return []string{"runs", "workflowrun", "workflowruns", "wfr"} }

func newDeps(env *cli.Env, cmd *cobra.Command, o Options) *deps {
	d := &deps{Env: env, Flags: reach.New(), Options: o}
	f := cmd.Flags()
	d.Flags.AddFlags(f)
	d.Flags.AddNamespace(f)
	f.Lookup("namespace").Usage = "Namespace of the run; the context's own if empty"
	f.Lookup("log").Usage = "Folder of an event log: of local runs (" + reach.LocalDir + " if empty, with --local), or of a stopped daemon"
	d.Flags.AddLocal(f)
	return d
}

// opened is where runs are read from, and the way to the log if it was taken.
type opened struct {
	source  runs.Source
	cluster *reach.Cluster // nil for a log alone
	log     *reach.Log     // nil while nobody needs it
}

func (o *opened) Close() {
	if o.log != nil {
		_ = o.log.Close()
	}
}

// open finds where runs are: in the log that the user named, or else in the cluster.
func (d *deps) open(ctx context.Context) (*opened, error) {
	if err := d.Flags.Check(); err != nil {
		return nil, err
	}
	if d.Flags.LogAlone() {
		log, err := d.Flags.Log(ctx, d.Env.Err)
		if err != nil {
			return nil, err
		}
		return &opened{source: d.logged(log), log: log}, nil
	}
	return d.openCluster()
}

// openCluster reads the resources; the log is reached when somebody needs it, on the NATS server that the user named or else
// in the cluster.
func (d *deps) openCluster() (*opened, error) {
	cluster, err := d.Flags.Cluster()
	if errors.Is(err, reach.ErrNoKubeconfig) {
		err = fmt.Errorf("%w; or add --local for a run on this machine", err)
	}
	if err != nil {
		return nil, err
	}
	return &opened{cluster: cluster, source: runs.InCluster(cluster, func(err error) {
		d.Env.Notef("%s: the connection broke, trying again: %v", d.Env.Name, err)
	})}, nil
}

func (d *deps) logged(log *reach.Log) *runs.Logged {
	progress := d.Env.Progress()
	l := runs.InLog(log)
	l.Replaying, l.Replayed = func(seq uint64) { progress.Showf("reading the log: %d commits", seq) }, progress.Done
	return l
}

// key of a run: in a log alone the namespace is only what the user said.
func (d *deps) key(o *opened, name string) types.NamespacedName {
	if o.cluster != nil {
		return types.NamespacedName{Namespace: o.cluster.Namespace, Name: name}
	}
	return types.NamespacedName{Namespace: d.Flags.Namespace, Name: name}
}

// reachLog takes the way to the log, if it was not taken yet.
func (d *deps) reachLog(ctx context.Context, o *opened) error {
	if o.log != nil {
		return nil
	}
	log, err := d.Flags.Log(ctx, d.Env.Err)
	o.log = log
	return err
}

// whole is a run with all that the log has of it. Where the log cannot be reached it is what the resource says.
func (d *deps) whole(ctx context.Context, o *opened, r *runs.Run) *runs.Run {
	if r.State != nil || r.ID == "" {
		return r
	}
	err := d.reachLog(ctx, o)
	if err == nil {
		var f *runs.Fold
		if f, err = d.logged(o.log).Fold(ctx, r.ID); err == nil && f.State.Known() {
			f.CreatedAt = r.CreatedAt
			return f.Look()
		}
	}
	if err != nil {
		d.Env.Notef("This is what the resource says, because the log could not be reached: %v", err)
	}
	return r
}

func (d *deps) view() show.View {
	return show.View{Paint: term.Paint{On: d.Env.Colored(d.Env.Out)}, Width: d.Env.Width(), Now: d.Env.Now()}
}

func (d *deps) print(lines []string) error {
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
		return cli.Usagef("%s needs the name of a run", cmd.CommandPath())
	case len(args) > 1:
		return cli.Usagef("%s takes one name, not %d", cmd.CommandPath(), len(args))
	}
	return checkName(args[0])
}

func checkName(name string) error {
	for _, problem := range validation.IsDNS1123Subdomain(name) {
		return cli.Usagef("the name %q is not one that Kubernetes takes: %s", name, problem)
	}
	return nil
}

// completeTimeout bounds what a shell waits for.
const completeTimeout = 3 * time.Second

// complete offers the names of the runs that there are.
func (d *deps) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	o, err := d.open(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer o.Close()
	list, err := o.source.List(ctx, d.key(o, "").Namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name + "\t" + string(r.Phase())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
