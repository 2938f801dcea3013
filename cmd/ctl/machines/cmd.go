package machines

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fleet"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/reach"
)

type options struct {
	env           *cli.Env
	flags         *reach.Flags
	names         []string
	cluster       string
	allNamespaces bool
	all           bool
	live          bool
	watch         bool
	format        output.Format
}

// NewCmdGet is `scutectl get machines`.
func NewCmdGet(env *cli.Env) *cobra.Command {
	o := &options{env: env, flags: reach.New()}
	cmd := &cobra.Command{
		Use:     "machines [MACHINE ...]",
		Aliases: []string{"machine", "ma"},
		Short:   "Show machines: etcd's quorum, health, marks, decisions, and what happens next",
		Long: `Show machines: etcd's quorum, health, marks, decisions, and what happens next.

  ✓ healthy   ! something is not   ✗ unhealthy   ▶ starting   ◀ being deleted

It reads the objects of Cluster API and scute, and the event log for the rules and times of decisions. Where the log cannot be
reached it says so, and shows what the objects say. It needs neither a RepairPolicy nor scute's kinds.

ETCD is Cluster API's condition, which does not say that a member answers. Who does is in the line "etcd" of control planes
that scute has looked at because something is wrong there.

Where the terminal is too narrow, these columns leave in this order: NEXT and DECISION to lines of their own, in between ZONE,
then AGE, and MARKS. Healthy workers are counted, not listed, unless --all is given. With --watch a terminal is redrawn
in place; in a pipe each new fact is a line.`,
		Example: "  " + env.Name + " get machines -A --watch\n  " + env.Name + " get machines -n fleet --cluster prod -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.flags.AddFlags(cmd.Flags())
	o.flags.AddNamespace(cmd.Flags())
	f := cmd.Flags()
	f.Lookup("namespace").Usage = "Namespace of the clusters; the context's own if empty"
	f.Lookup("log").Usage = "Folder of the event log of a stopped daemon; the daemon's own log if empty"
	f.Lookup("nats").Usage = "Address of the NATS server that has the event log, for example tls://nats:4222; the daemon's own log if empty"
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show the clusters of all namespaces")
	f.StringVar(&o.cluster, "cluster", "", "Show this cluster only")
	f.BoolVar(&o.all, "all", false, "List healthy workers too")
	f.BoolVar(&o.live, "live", false, "Show what the objects say, and do not read the event log")
	f.BoolVarP(&o.watch, "watch", "w", false, "Show it again whenever it changes, until interrupted")
	o.format.AddFlag(f, "json", "yaml", "wide", "jsonpath=...")
	return cmd
}

func (o *options) validate() error {
	for _, name := range append(slices.Clone(o.names), o.cluster) {
		if name == "" {
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			return cli.Usagef("the name %q is not one that Kubernetes takes: %s", name, problem)
		}
	}
	if err := o.format.Validate(); err != nil {
		return err
	}
	if text, _ := o.format.Text(); o.watch && !text {
		return cli.Usagef("--watch shows text: leave -o %s out", o.format.Value)
	}
	if o.live && o.flags.LogAlone() {
		return cli.Usagef("--live reads no log: leave --log and --nats out")
	}
	return o.flags.Validate()
}

func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	cluster, err := o.flags.Cluster()
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

func (o *options) show(p *picture) error {
	if text, _ := o.format.Text(); !text {
		value := map[string]any{"clusters": append([]*fleet.Cluster{}, p.clusters...), "log": p.log}
		if err := o.format.PrintValue(o.env.Out, value); err != nil {
			return err
		}
	} else if err := o.print(p); err != nil {
		return err
	}
	o.notes(p)
	return nil
}

// notes are what is missing in a picture.
func (o *options) notes(p *picture) {
	if len(p.objects.Withheld) > 0 {
		o.env.Notef("You may not list %s: what they say is missing above.", strings.Join(p.objects.Withheld, ", "))
	}
	if p.log.Error != "" {
		o.env.Notef("The log could not be read, so this is what the objects say; rules and times are missing: %s", p.log.Error)
	}
}

func (o *options) print(p *picture) error {
	if len(p.clusters) == 0 {
		o.env.Notef("%s", p.none())
		return nil
	}
	return o.lines(o.draw(p))
}
