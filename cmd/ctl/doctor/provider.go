package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

type providerOptions struct {
	*kit.Kit
	format      cli.Format
	name        string
	timeout     time.Duration
	ignore      []string
	dryRun, yes bool
}

func newCmdProvider(env *cli.Env) *cobra.Command {
	o := &providerOptions{}
	cmd := &cobra.Command{
		Use:   "provider CLUSTER",
		Short: "Check on a test cluster which kinds of a provider acknowledge a pause",
		Long: `Pause a test cluster, and report for each kind of its objects whether, how fast and by which signal they acknowledged the pause,
and whether they reconcile again afterwards. It is for developers of infrastructure, bootstrap and control-plane providers.

The check creates a Pause, doctor-provider.CLUSTER, and deletes it at the end: scuted then restores the earlier pause state.
A check that was killed leaves this Pause: the next check with --yes deletes it first, or delete it with
scutectl resume cluster doctor-provider.CLUSTER.

Exit status: 0 every kind passed, or --dry-run is set; 1 a kind failed, or the check could not run.`,
		Example: kit.Examples(env, "$ doctor provider test -n fleet --dry-run", "$ doctor provider test -n fleet --yes -o json"),
		Args:    kit.OneName("a cluster"),
		RunE:    kit.WithName(&o.name, o.run),
	}
	o.Kit = kit.New(env, cmd, "cluster")
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "How long an object may take to acknowledge, and then to reconcile again")
	f.StringSliceVar(&o.ignore, "ignore", nil, "Kinds (Kind.group) that need no signal, because no controller acts on their objects")
	f.BoolVar(&o.dryRun, "dry-run", false, "Show the kinds and change nothing")
	kit.YesVar(f, &o.yes)
	o.format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *providerOptions) validate() error {
	if o.timeout < time.Second {
		return cli.Usagef("--timeout is %s: it must be at least 1s", view.Duration(o.timeout))
	}
	return o.Flags.Check()
}

func (o *providerOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	c, err := newCheck(o)
	if err != nil {
		return err
	}
	report, err := c.survey(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("cluster %s/%s with %d objects of %d kinds", report.Namespace, report.Cluster, report.objects(), len(report.Kinds))
	if o.dryRun {
		o.Env.Notef("Nothing is changed. The check would pause %s for up to %s, and resume it.", what, view.Duration(o.timeout))
		return o.print(report)
	}
	if !o.yes {
		if err := o.Confirm("--yes", fmt.Sprintf("Pause %s for up to %s, and resume it?", what, view.Duration(o.timeout)), "pause "+what+", and resume it"); err != nil {
			return err
		}
	}
	if err := c.measure(ctx, report); err != nil {
		return err
	}
	if err := o.print(report); err != nil {
		return err
	}
	failed := 0
	for _, k := range report.Kinds {
		if !k.Passed {
			failed++
		}
	}
	if !report.Passed {
		o.Env.Notef("%d of %d kinds failed.", failed, len(report.Kinds))
		return cli.SilentExit(cli.ExitFailed)
	}
	o.Env.Notef("Every kind passed; the cluster was restored and reconciled again after %s.", seconds(report.ResumeSeconds))
	return nil
}

func (o *providerOptions) print(r *providerReport) error {
	if o.format.Data() {
		return o.format.Print(o.Env.Out, r)
	}
	return o.Print(r.lines(o.View()))
}
