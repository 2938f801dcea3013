package logcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
)

type restoreOptions struct {
	deps
	Older    bool
	SetAside bool
	destination
}

func newCmdRestore(env *cli.Env) *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use:   "log DIR (--log FOLDER | --nats URL)",
		Short: "Restore the event log from a backup, to a folder or to a NATS server",
		Long: `Restore the event log from a backup, to the folder of an embedded log or to a NATS server (2.15 or later): each commit with its
sequence, its time and every byte, so that seals and high-water marks stay valid. The backup is verified before, and the log after.

Stop the daemon first. The destination must not have a log, because nothing is overwritten; --set-aside renames a log
that is in the folder. If the command is killed, run it again: until it finishes, no daemon can open the log.

A backup that lacks acknowledged commits is refused, unless --older is set. The folder, and the management cluster that
--kubeconfig or --context names, record what was acknowledged. Without these flags, the daemon compares when it starts.`,
		Example: kit.Examples(env, "$ restore log /backup/scute --log /var/lib/scute", "$ restore log /backup/scute --nats tls://nats:4222 --nats-creds archivist.creds --replicas 3"),
		Args:    exactlyOne("the folder of the backup"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.Older, "older", false, "Restore although the log had acknowledged more commits than the backup has")
	f.BoolVar(&o.SetAside, "set-aside", false, "With --log: rename a log that is in the folder to jetstream-TIME, and restore in its place")
	o.addFlags(cmd, "With --nats: number of servers that must store the log", "log that was backed up")
	return o.command(env, cmd, o.run, "json")
}

func (o *restoreOptions) run(ctx context.Context, args []string) error {
	dir := args[0]
	if err := o.Flags.Check(); err != nil {
		return err
	}
	switch {
	case !o.Flags.LogOnly():
		return cli.Usagef("name the destination with --log FOLDER for an embedded log, or --nats URL; a log cannot be restored into a running daemon")
	case o.Flags.URL != "" && o.SetAside:
		return cli.Usagef("--set-aside needs --log: delete the stream on the NATS server yourself if nobody needs it")
	case o.Flags.URL == "" && o.Replicas != 1:
		return cli.Usagef("--replicas needs --nats")
	}
	if err := o.validate(); err != nil {
		return err
	}
	m, err := o.verifyBackup(ctx, dir)
	if damage := (*backup.DamageError)(nil); errors.As(err, &damage) && damage.HashesOnly {
		o.Env.Notef("%s: %v They are restored.", o.Env.Name, err)
	} else if err != nil {
		return err
	}
	if !o.Older {
		const remedy = "find a newer backup of the log that acted last; if there is none, add --older, and reconcile the log when the daemon has started"
		if err := o.checkNewest(ctx, "the backup", m.LogID, m.Last, remedy); err != nil {
			return err
		}
	}
	progress := o.Env.Progress()
	r := backup.Source(dir, m,
		func(seq, last uint64) { progress.Showf("restoring: %d of %d commits", seq, last) },
		func(seq, last uint64) { progress.Showf("verifying: %d of %d commits", seq, last) })
	r.OnWait = func(what string) { progress.Showf("waiting %s", what) }
	where, err := o.restore(ctx, m, r)
	progress.Done()
	if err != nil {
		return o.explain(err)
	}
	out := outcomeOf(m, dir, where)
	if err := o.print(out, fmt.Sprintf("restored: log %s at %s, %s; verified", out.LogID, out.Where, out.content())); err != nil {
		return err
	}
	o.printNext(m)
	return nil
}

func (o *restoreOptions) restore(ctx context.Context, m backup.Manifest, r eventlog.RestoreSource) (where string, err error) {
	logger, f := connect.Logger(o.Env.Err), o.Flags
	if f.URL != "" {
		return eventlog.RedactURL(f.URL), o.restoreTo(ctx, f, logger, m.MaxBytes, r)
	}
	allow := embedded.RestoreOptions{AllowOlder: o.Older}
	if o.SetAside {
		allow.RenameExistingTo = "jetstream-" + o.Env.Now().UTC().Format("20060102T150405Z")
	}
	return f.Dir, embedded.Restore(ctx, embedded.Options{Dir: f.Dir, MaxBytes: cmp.Or(o.MaxBytes, m.MaxBytes), Logger: logger}, r, allow)
}

// destination contains the flags of commands that write a log to another location.
type destination struct {
	Replicas int
	MaxBytes int64
}

func (d *destination) addFlags(cmd *cobra.Command, replicas, of string) {
	cmd.Flags().IntVar(&d.Replicas, "replicas", 1, replicas)
	cmd.Flags().Int64Var(&d.MaxBytes, "max-bytes", 0, "Size at which the log refuses new commits; that of the "+of+" if 0")
}

func (d *destination) validate() error {
	switch {
	case d.Replicas < 1:
		return cli.Usagef("--replicas is %d: it must be 1 or more", d.Replicas)
	case d.MaxBytes < 0:
		return cli.Usagef("--max-bytes is %d: it must be 0 or more", d.MaxBytes)
	}
	return nil
}

// restoreTo restores a log to the NATS server that the flags name. maxBytes is the size limit of
// the original log.
func (d *destination) restoreTo(ctx context.Context, f *connect.Flags, logger *slog.Logger, maxBytes int64, r eventlog.RestoreSource) error {
	to := f.External(logger)
	to.Replicas, to.MaxBytes = d.Replicas, cmp.Or(d.MaxBytes, maxBytes)
	return f.ExplainConnect(eventlog.RestoreExternal(ctx, to, r))
}

// explain adds to an error the remedies that only this command offers.
func (o *restoreOptions) explain(err error) error {
	if errors.Is(err, eventlog.ErrGap) && !o.Older {
		return fmt.Errorf("%w: find a newer backup; if there is none, add --older, and reconcile the log when the daemon has started", err)
	}
	if errors.Is(err, eventlog.ErrExists) && o.Flags.URL == "" {
		return fmt.Errorf("%w; or add --set-aside, which renames the existing log", err)
	}
	return err
}

// checkNewest returns an error if a copy of a log ends before the high-water mark that the
// management cluster stores. Without --kubeconfig and --context it checks nothing.
func (d *deps) checkNewest(ctx context.Context, what, logID string, last uint64, remedy string) error {
	if d.Flags.Kubeconfig == "" && d.Flags.Context == "" {
		return nil
	}
	cluster, err := d.Flags.Cluster()
	if err != nil {
		return err
	}
	marks, err := marksOf(ctx, cluster, logID)
	if err != nil {
		return err
	}
	known := max(marks.Lease.Sequence, marks.Statuses.Sequence)
	switch lease := marks.Lease; {
	case lease.LogID != "" && lease.LogID != logID:
		return fmt.Errorf("%s has log %s, and log %s acted last on this management cluster: %s", what, logID, lease.LogID, remedy)
	case lease.LogID == logID && known > last:
		return fmt.Errorf("the log acknowledged commits up to %d on this management cluster, but %s ends at %d: %s", known, what, last, remedy)
	}
	return nil
}

func (o *restoreOptions) printNext(m backup.Manifest) {
	if o.Flags.Local {
		o.Env.Notef("Next: resume the runs with the commands that started them; %s lists them.", o.Hint("", "get", "runs"))
		return
	}
	start := "Start the daemon with --log-dir " + o.Flags.Dir + " (in the pod of the chart: on the volume that has this folder)."
	if o.Flags.URL != "" {
		start = "Start the daemon with --nats-url " + eventlog.RedactURL(o.Flags.URL) + " (nats.url of the chart)."
	}
	o.Env.Notef("Next:\n1. %s\n2. If the management cluster has recorded no commit after %d, the daemon continues.\n"+
		"3. Otherwise the daemon does nothing and reports LogWentBack: %s shows what is open and what will happen to it, and records your decision with --yes.",
		start, m.Last, o.Env.Hint("log", "reconcile"))
}
