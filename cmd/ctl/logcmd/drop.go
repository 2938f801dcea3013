package logcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/output"
	"scute.dev/eventlog"
	"scute.dev/eventlog/drop"
	"scute.dev/internal/plural"
	"scute.dev/internal/retention"
)

type dropOptions struct {
	deps
	Format  output.Format
	Through int
	Archive string
	Reason  string
	Yes     bool
}

func newCmdDrop(env *cli.Env) *cobra.Command {
	o := &dropOptions{}
	cmd := &cobra.Command{
		Use:   "drop --through EPOCH --archive DIR --reason WHY",
		Short: "Drop the first closed epochs of the log, which are in an archive",
		Long: `Drop the first closed epochs of the log, up to one, which are in an archive: a backup of the log (backup log). The archive is verified
whole, and compared with the log. What has not ended stays, with all of its commits, whatever their age; of everything else the log
keeps that there was such an object, so that it is not begun again. Sequences do not change.

What was dropped is read in the archive, and a backup into the archive continues it. Keep it: it is the only copy.

The log is that of a stopped daemon (--log) or of local runs (--local), or that of a NATS server (--nats), where the command needs the
permissions to make, change and delete streams, and waits five minutes before it deletes what is dropped. The daemon's listener does not permit it: stop the daemon, and name the folder
of its log.

If the command dies in the middle, the next writer that opens the log ends what was decided, or removes what was half made.`,
		Example: kit.Examples(env, "$ log drop --through 3 --archive /backup/scute --reason 'older than two years' --log /var/lib/scute",
			"$ log drop --through 3 --archive /backup/scute --reason 'older than two years' --nats tls://nats:4222 --nats-creds archivist.creds --yes"),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return interrupted(cmd.Context(), o.run(cmd.Context())) },
	}
	o.Kit = kit.New(env, cmd, "")
	f := cmd.Flags()
	f.IntVar(&o.Through, "through", 0, "Number of the last epoch that is dropped: see log epochs")
	f.StringVar(&o.Archive, "archive", "", "Folder of a backup of the log that has these epochs")
	f.StringVar(&o.Reason, "reason", "", "Why: it is recorded in the log")
	kit.YesVar(f, &o.Yes)
	o.Format.AddFlag(cmd, "json")
	return cmd
}

func (o *dropOptions) validate() error {
	switch {
	case o.Through < 1:
		return cli.Usagef("--through is missing: the number of the last epoch that is dropped; %s lists them", o.Hint("", "log", "epochs"))
	case o.Archive == "":
		return cli.Usagef("--archive is missing: the folder of a backup of the log; %s makes one", o.Hint("", "backup", "log", "DIR"))
	}
	if err := eventlog.CheckReason(o.Reason); err != nil {
		return cli.Usagef("--reason: %v", err)
	}
	if o.Flags.Examine {
		return cli.Usagef("the remains of a damaged log cannot be dropped from: restore the log first")
	}
	return o.Format.Validate()
}

func (o *dropOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := o.Flags.Check(); err != nil { // --local names a log, too
		return err
	}
	if !o.Flags.LogAlone() {
		return guarded()
	}
	log, err := o.openToAppend(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	if log.Guarded || o.Flags.Dir != "" && !log.Static {
		return guarded()
	}
	progress := o.Env.Progress()
	plan, err := drop.Prepare(ctx, log.Log, o.Archive, o.Through, func() drop.Judge { return retention.NewJudge() }, func(doing string, seq, last uint64) {
		progress.Showf("%s: %d of %d commits", doing, seq, last)
	})
	progress.Done()
	if err != nil {
		return err
	}
	for _, line := range words(plan) {
		o.Env.Notef("%s", line)
	}
	if !o.Yes {
		if err := o.Confirm("Drop them? They are then in the archive only.", "drop them"); err != nil {
			return err
		}
	}
	err = plan.Carry(ctx, connect.Actor(ctx, nil), o.Reason, o.Env.Now(), drop.Waits{
		Replicas: func(what string) { progress.Showf("waiting %s", what) }, Unsettled: o.settle,
	})
	progress.Done()
	if err != nil {
		return err
	}
	if o.Format.Value != "" {
		return o.Format.Print(o.Env.Out, plan)
	}
	return o.Env.Linef("dropped: %s of log %s at %s; the log is whole from commit %d on, and %s has what was before", epochs(plan.Through), plan.LogID, log.Where, plan.Floor, o.Archive)
}

func guarded() error {
	return cli.Usagef("the daemon's listener does not permit to drop epochs: stop the daemon, and name the folder of its log (--log), or the NATS server (--nats) with a user that may make and delete streams")
}

// settle waits until a server has surely written what is kept to its disk.
func (o *dropOptions) settle(ctx context.Context, until time.Time) error {
	o.Env.Notef("It is decided. What was dropped is deleted at %s, when the NATS server has surely written to its disk what is kept. Who does not want to wait may interrupt this: the next daemon that starts does it.",
		until.UTC().Format(time.RFC3339))
	select {
	case <-ctx.Done():
		return fmt.Errorf("the epochs are dropped, but not deleted yet: the next daemon that starts deletes them, or run this again: %w", ctx.Err())
	case <-time.After(time.Until(until)):
		return nil
	}
}

// words say what a drop would do.
func words(p *drop.Plan) (out []string) {
	const mib = 1 << 20
	streams := make([]string, 0, len(p.Epochs))
	for _, e := range p.Epochs {
		streams = append(streams, e.Stream)
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(p.Objects)) {
		kinds = append(kinds, fmt.Sprintf("%d of kind %s", p.Objects[kind], kind))
	}
	return []string{
		fmt.Sprintf("log %s: drop %s (%s), commits 1 to %d, %.1f MiB", p.LogID, epochs(p.Through), strings.Join(streams, ", "), p.Floor-1, float64(p.Bytes)/mib),
		fmt.Sprintf("  dropped: %s", plural.Of(p.Dropped, "commit")),
		fmt.Sprintf("  kept: %s of what has not ended: %s", plural.Of(p.Kept, "commit"), strings.Join(kinds, ", ")),
		fmt.Sprintf("  kept of everything else: that there was such an object, %d; together about %.1f MiB", p.Tombstones, float64(p.KeptBytes)/mib),
		fmt.Sprintf("  archive: commits 1 to %d, of %s, verified", p.Archive.Last, p.Archive.Taken.Format("2006-01-02T15:04:05Z")),
	}
}

// epochs are the first ones.
func epochs(through int) string {
	if through == 1 {
		return "epoch 1"
	}
	return fmt.Sprintf("epochs 1 to %d", through)
}
