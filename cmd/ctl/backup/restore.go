package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/mover/transfer"
	"scute.dev/view"
)

type restoreOptions struct {
	options

	From             string
	Identities       []string
	SourceIsGone     bool
	SourceKubeconfig string
	SourceContext    string
	CarryStatus      []string
	AcceptLoss       []string
	DryRun           bool
	Timeout          time.Duration
	bucket           bucketOptions
}

func newCmdRestore(env *cli.Env) *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use: "clusters --from FOLDER|s3://BUCKET/NAME [--identity-file FILE] (--source-is-gone | --source-kubeconfig FILE)", Aliases: []string{"cluster"},
		Short: "Create the clusters of a backup in this management cluster, which then manages their machines",
		Long: `Create the Cluster API objects of a backup in this management cluster, whose controllers then manage the machines. The machines
themselves are not changed. All objects are created paused. When they match the backup, the clusters that were not paused in the backup are
resumed.

All checks run before anything is changed, and every finding is shown. If the command is killed, run it again: it continues.

Two management clusters that manage the same machines replace each other's machines. Therefore either name the management cluster that
was backed up (--source-kubeconfig), in which the clusters must be paused, or confirm that no other one manages them (--source-is-gone).`,
		Example: kit.Examples(env,
			"# Check only",
			"$ restore clusters --from prod-2026-11-23 --identity-file key.txt --source-is-gone --dry-run",
			"$ restore clusters --from prod-2026-11-23 --identity-file key.txt --source-is-gone"),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.Kit = kit.New(env, cmd, "")
	f := cmd.Flags()
	f.StringVar(&o.From, "from", "", "Folder of the backup, or s3://BUCKET/NAME")
	o.bucket.addFlags(f)
	f.StringSliceVarP(&o.Identities, "identity-file", "i", nil, "File with age private keys; may be repeated")
	f.BoolVar(&o.SourceIsGone, "source-is-gone", false, "Confirm that no other management cluster manages these clusters, now or later: the one that was backed up is gone for good, or has lost them and is the target, and they were not moved elsewhere")
	f.StringVar(&o.SourceKubeconfig, "source-kubeconfig", "", "Kubeconfig file of the management cluster that was backed up: scutectl checks whether it still manages the clusters")
	f.StringVar(&o.SourceContext, "source-context", "", "Context of that file; its current one if empty")
	f.StringSliceVar(&o.CarryStatus, "carry-status", nil, "Kinds, as Kind.group, whose status is written too, because no controller can compute it; may be repeated")
	f.StringSliceVar(&o.AcceptLoss, "accept-loss", nil, "Kinds, as Kind.group, of hosted control planes that may be created empty, because their data is not in the backup; may be repeated")
	f.BoolVar(&o.DryRun, "dry-run", false, "Check the backup and the target, and change nothing")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "How long to wait until the controllers of the target have acknowledged every copy, and then until every object reconciles again")
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *restoreOptions) validate() error {
	switch {
	case o.From == "":
		return cli.Usagef("--from is missing: name the folder of the backup, or s3://BUCKET/NAME")
	case o.SourceIsGone && o.SourceKubeconfig != "":
		return cli.Usagef("--source-is-gone and --source-kubeconfig cannot be used together")
	case o.SourceContext != "" && o.SourceKubeconfig == "":
		return cli.Usagef("--source-context needs --source-kubeconfig")
	case o.Timeout <= 0:
		return cli.Usagef("--timeout is %s: it must be greater than zero", view.Duration(o.Timeout))
	}
	return o.options.validate()
}

type restoreReport struct {
	ID          string               `json:"id"`
	Folder      string               `json:"folder"`
	TakenAt     time.Time            `json:"takenAt"`
	Namespace   string               `json:"namespace"`
	Clusters    []string             `json:"clusters"`
	Objects     int                  `json:"objects"`
	DryRun      bool                 `json:"dryRun,omitempty"`
	StillPaused []mover.ObjectReason `json:"stillPaused,omitempty"`
	Warnings    []mover.Finding      `json:"warnings,omitempty"`
}

func (o *restoreOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	ids, err := identities(o.Identities)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	source, err := o.source()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	target, _, err := o.connect("target")
	if err != nil {
		return err
	}
	dir := o.From
	if strings.HasPrefix(o.From, scheme) {
		fetched, err := o.bucket.fetch(ctx, o.From)
		if err != nil {
			return err
		}
		defer os.RemoveAll(fetched)
		dir = filepath.Join(fetched, "backup")
	}
	backup, err := archive.Open(dir, ids)
	if err != nil {
		return fmt.Errorf("--from: %w", hintInFolder(ctx, dir, err))
	}
	progress := o.Env.Progress()
	defer progress.Done()
	r := &transfer.Restore{
		Target: target, Archive: backup, Source: source, SourceGone: o.SourceIsGone, CarryStatus: o.CarryStatus, AcceptLoss: o.AcceptLoss, AckTimeout: o.Timeout,
		Progress: func(s transfer.Step) {
			progress.Showf("%s: %d of %s", s.Phase, s.Done, view.Count(s.Total, "object"))
		},
	}
	warnings, err := r.Prepare(ctx)
	progress.Done()
	if err != nil {
		return o.explain(ctx, err, "this command has changed nothing: fix the findings, then run it again", "nothing was changed")
	}
	o.printFindings(warnings)
	if o.DryRun {
		return o.report(backup.Index, warnings, nil)
	}
	if err := r.Run(ctx); err != nil {
		progress.Done()
		return o.explain(ctx, err, "everything that was created is still paused: fix the findings, then run the command again", "run the same command to continue")
	}
	waiting, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	asleep, err := r.AwaitResume(waiting)
	progress.Done()
	switch {
	case ctx.Err() != nil:
		return cli.Interrupted(errors.New("interrupted: the clusters are restored and resumed"))
	case err != nil && (waiting.Err() == nil || len(asleep) == 0):
		return fmt.Errorf("the clusters are restored, but the check that they reconcile again failed: %w", err)
	}
	return o.report(backup.Index, warnings, asleep)
}

// source returns the management cluster that was backed up, or nil if no flag names it.
func (o *restoreOptions) source() (*kube.Cluster, error) {
	if o.SourceKubeconfig == "" {
		return nil, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.SourceKubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: o.SourceContext}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--source-kubeconfig: %w", err)
	}
	return kube.Connect("source", config)
}

func (o *restoreOptions) report(index *archive.Index, warnings []mover.Finding, asleep []mover.ObjectReason) error {
	if o.Format.Data() {
		err := o.Format.Print(o.Env.Out, restoreReport{
			ID: index.ID, Folder: o.From, TakenAt: index.TakenAt, Namespace: index.Namespace, Clusters: index.Clusters,
			Objects: len(index.Objects), DryRun: o.DryRun, StillPaused: asleep, Warnings: warnings,
		})
		if err != nil {
			return err
		}
	} else {
		did := "restored"
		if o.DryRun {
			did = "can be restored: nothing was changed"
		}
		err := o.Env.Linef("backup %s of %s, %s of namespace %s (%s), %s: %s", index.ID, index.TakenAt.UTC().Format(time.RFC3339),
			view.Count(len(index.Clusters), "cluster"), index.Namespace, view.First(index.Clusters), view.Count(len(index.Objects), "object"), did)
		if err != nil {
			return err
		}
	}
	for _, w := range asleep[:min(len(asleep), 10)] {
		o.Env.Notef("%s does not reconcile yet: %s", w.Ref, w.Reason)
	}
	if len(asleep) > 0 {
		return errors.New(view.Count(len(asleep), "object does", "objects do") + " not reconcile yet: check that every controller of the target is running")
	}
	return nil
}
