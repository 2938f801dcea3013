package backup

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/mover/transfer"
	"scute.dev/view"
)

type backupOptions struct {
	options

	Clusters []string
	All      bool
	To       string
	keys     publicKeys
}

func newCmdBackup(env *cli.Env) *cobra.Command {
	o := &backupOptions{}
	cmd := &cobra.Command{
		Use: "clusters (NAME ... | --all) --to FOLDER (--age-recipient KEY | --recipients-file FILE | --plaintext)", Aliases: []string{"cluster"},
		Short: "Write the Cluster API objects of clusters to a folder, encrypted",
		Long: `Write the Cluster API objects of clusters, with their Secrets, to a folder. Nothing is changed in the management cluster, and
nothing is paused: objects that change while they are read are read again.

The objects contain the private keys of the clusters, so they are encrypted with age. The index of the folder is not encrypted: it
contains only names. The backup is complete when the command exits with status 0: it writes the file SHA256SUMS last.`,
		Example: kit.Examples(env,
			"$ backup clusters prod -n fleet --to prod-2026-11-23 --age-recipient age1...",
			"$ backup clusters --all -n fleet --to fleet-2026-11-23 --recipients-file team.txt"),
		Args:              kit.Names(-1),
		RunE:              kit.WithNames(&o.Clusters, o.run),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.Kit = kit.New(env, cmd, "clusters")
	f := cmd.Flags()
	f.BoolVar(&o.All, "all", false, "Back up all clusters of the namespace, and other movable objects")
	f.StringVar(&o.To, "to", "", "Folder to write to: a new or empty folder, or one with an unfinished backup")
	o.keys.addFlags(f)
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *backupOptions) validate() error {
	switch {
	case o.All == (len(o.Clusters) > 0):
		return cli.Usagef("no cluster is named: give the names of clusters, or --all")
	case o.To == "":
		return cli.Usagef("--to is missing: name the folder to write to")
	case strings.Contains(o.To, "://"):
		return cli.Usagef("--to is %q: it must be a folder; only a BackupSchedule writes to a bucket", o.To)
	}
	slices.Sort(o.Clusters)
	o.Clusters = slices.Compact(o.Clusters)
	return errors.Join(o.options.validate(), o.keys.validate())
}

type backupReport struct {
	ID        string               `json:"id"`
	Folder    string               `json:"folder"`
	TakenAt   time.Time            `json:"takenAt"`
	Namespace string               `json:"namespace"`
	Clusters  []string             `json:"clusters"`
	Objects   int                  `json:"objects"`
	Encrypted bool                 `json:"encrypted"`
	Changed   []object.Ref         `json:"changed,omitempty"`
	Skipped   []mover.ObjectReason `json:"excluded,omitempty"`
	Warnings  []mover.Finding      `json:"warnings,omitempty"`
}

func (o *backupOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	recipients, names, err := o.keys.read()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	source, namespace, err := o.connect("source")
	if err != nil {
		return err
	}
	writer, err := archive.Create(o.To, recipients)
	if err != nil {
		return cli.Usagef("--to: %w", err)
	}
	progress := o.Env.Progress()
	defer progress.Done()
	backup := &transfer.Backup{
		Source: source, Selection: mover.Selection{Namespace: namespace, Clusters: o.Clusters, All: o.All}, Writer: writer,
		Progress: func(done, total int) { progress.Showf("reading: %d of %s", done, view.Count(total, "object")) },
	}
	index, warnings, err := backup.Run(ctx)
	progress.Done()
	if err != nil {
		return o.explain(ctx, err, "no backup was created: fix the findings, then run the command again",
			"no backup was created; run the same command to start again in "+o.To)
	}
	index.ID, index.TakenAt, index.Recipients = string(uuid.NewUUID()), o.Env.Now().UTC(), names
	index.Program = o.Env.Name + " " + o.Env.Version
	if err := writer.Finish(index); err != nil {
		return err
	}
	return o.report(index, warnings)
}

func (o *backupOptions) report(index *archive.Index, warnings []mover.Finding) error {
	o.printFindings(warnings)
	for _, ref := range index.Changed {
		o.Env.Notef("%s changed while it was read: its copy may be newer or older than those of the other objects", ref)
	}
	if o.Format.Data() {
		return o.Format.Print(o.Env.Out, backupReport{
			ID: index.ID, Folder: o.To, TakenAt: index.TakenAt, Namespace: index.Namespace, Clusters: index.Clusters, Objects: len(index.Objects),
			Encrypted: len(index.Recipients) > 0, Changed: index.Changed, Skipped: index.Excluded, Warnings: warnings,
		})
	}
	for _, left := range index.Excluded {
		o.Env.Notef("%s is not in the backup: %s", left.Ref, left.Reason)
	}
	how := "in PLAIN TEXT, with the private keys of the clusters"
	if len(index.Recipients) > 0 {
		how = "encrypted to " + view.Count(len(index.Recipients), "recipient")
	}
	return o.Env.Linef("backup %s of %s of namespace %s (%s): %s, %s, in %s", index.ID,
		view.Count(len(index.Clusters), "cluster"), index.Namespace, view.First(index.Clusters), view.Count(len(index.Objects), "object"), how, o.To)
}
