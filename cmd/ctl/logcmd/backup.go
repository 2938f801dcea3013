package logcmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/audit"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/seal"
)

// Verbs returns `backup log` and `restore log`, by verb.
func Verbs(env *cli.Env) kit.Verbs {
	return kit.Verbs{"backup": newCmdBackup(env), "restore": newCmdRestore(env)}
}

type backupOptions struct {
	deps
	Checkpoint string
	Verify     bool
}

func newCmdBackup(env *cli.Env) *cobra.Command {
	o := &backupOptions{}
	cmd := &cobra.Command{
		Use:   "log DIR",
		Short: "Copy the event log to a folder, from which it can be restored unchanged",
		Long: `Copy the event log to a folder, from which it can be restored unchanged: each commit with its sequence, its time and every byte. A
backup to the folder of an earlier backup adds the new commits. The whole backup is read again and verified before the command ends.
If the command fails or is killed, the earlier backup is unchanged.

The log is the daemon's in the cluster, that of a stopped daemon (--log) or of local runs (--local), or that on a NATS server
(--nats). The daemon can continue meanwhile. The backup includes the newest signed checkpoint of the cluster, or that of --checkpoint.`,
		Example: kit.Examples(env, "$ backup log /backup/scute", "$ backup log /backup/scute --nats tls://nats:4222 --nats-creds reader.creds",
			"$ backup log /backup/scute --verify"),
		Args: exactlyOne("the folder of the backup"),
	}
	f := cmd.Flags()
	f.StringVar(&o.Checkpoint, "checkpoint", "", "File with the newest signed checkpoint; the one in the cluster, or beside the log in a folder, if empty")
	f.BoolVar(&o.Verify, "verify", false, "Verify the existing backup, and write nothing")
	return o.command(env, cmd, o.run, "json")
}

// outcome is the output of `backup log` and `restore log`.
type outcome struct {
	LogID string `json:"logID"`
	// Where is the location of the log, empty if a backup was only verified.
	Where  string `json:"where,omitempty"`
	Backup string `json:"backup"`
	Last   uint64 `json:"last"`
	// New is the number of commits that were not yet in the backup.
	New   uint64 `json:"new,omitempty"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	// Stored is when the last commit was stored.
	Stored string `json:"stored,omitempty"`
}

func outcomeOf(m backup.Manifest, dir, where string) outcome {
	out := outcome{LogID: m.LogID, Where: where, Backup: dir, Last: m.Last, Files: len(m.Parts), Bytes: m.Bytes()}
	if m.Last > 0 {
		out.Stored = m.Stored.Format("2006-01-02T15:04:05Z")
	}
	return out
}

func (o outcome) content() string {
	const mib = 1 << 20
	if o.Last == 0 {
		return "no commits"
	}
	return fmt.Sprintf("commits 1 to %d, until %s, %.1f MiB", o.Last, o.Stored, float64(o.Bytes)/mib)
}

func (o *backupOptions) run(ctx context.Context, args []string) error {
	dir := args[0]
	if o.Verify {
		m, err := o.verifyBackup(ctx, dir)
		if err != nil {
			return err
		}
		out := outcomeOf(m, dir, "")
		return o.print(out, fmt.Sprintf("intact: backup of log %s in %s, %s", out.LogID, out.Backup, out.content()))
	}
	log, err := o.OpenLog(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	checkpoint, err := o.checkpoint(ctx)
	if err != nil {
		return err
	}
	had, err := backup.Read(dir)
	if err != nil && !errors.Is(err, backup.ErrNotFound) {
		return err
	}
	progress := o.Env.Progress()
	m, err := backup.Write(ctx, log, dir, backup.Options{
		Checkpoint: checkpoint, Now: o.Env.Now(),
		Copied:   func(seq, head uint64) { progress.Showf("copying: %d of %d commits", seq, head) },
		Verified: func(seq, head uint64) { progress.Showf("verifying: %d of %d commits", seq, head) },
	})
	progress.Done()
	if err != nil {
		return err
	}
	if checkpoint == nil {
		o.Env.Notef("This backup has no signed checkpoint: %s needs one from elsewhere.", o.Env.Hint("audit", "verify", "--export", dir))
	}
	out := outcomeOf(m, dir, log.Where)
	out.New = m.Last - had.Last
	return o.print(out, fmt.Sprintf("backed up: log %s at %s to %s, %s; %d new commits; verified", out.LogID, out.Where, out.Backup, out.content(), out.New))
}

func (d *deps) print(out any, words string) error {
	if d.Format.Value != "" {
		return d.Format.Print(d.Env.Out, out)
	}
	return d.Env.Linef("%s", words)
}

func (d *deps) verifyBackup(ctx context.Context, dir string) (backup.Manifest, error) {
	progress := d.Env.Progress()
	defer progress.Done()
	return backup.Verify(ctx, dir, func(seq, last uint64) { progress.Showf("verifying: %d of %d commits", seq, last) })
}

// checkpoint returns the newest available checkpoint of the log, or nil.
func (o *backupOptions) checkpoint(ctx context.Context) ([]byte, error) {
	path := o.Checkpoint
	switch {
	case path != "":
	case o.Flags.Dir != "":
		path = seal.CheckpointPath(o.Flags.Dir)
		if _, err := os.Stat(path); err != nil {
			return nil, nil //nolint:nilerr // the log was never sealed
		}
	case o.Flags.URL != "":
		return nil, nil
	default:
		text, err := audit.Checkpoint(ctx, o.Flags)
		if err != nil {
			o.Env.Notef("%s: %v", o.Env.Name, err)
		}
		return text, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	return text, nil
}
