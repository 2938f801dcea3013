package logcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
)

type migrateOptions struct {
	deps
	destination
}

func newCmdMigrate(env *cli.Env) *cobra.Command {
	o := &migrateOptions{}
	cmd := &cobra.Command{
		Use:   "migrate --log FOLDER --nats URL",
		Short: "Move an embedded event log to a NATS server, where it continues",
		Long: `Move an embedded event log to a NATS server (2.15 or later), where it continues: each commit with its sequence, its time and every byte, so
that seals and high-water marks stay valid. Both are compared before the log can be opened at its new location.

Stop the daemon first. Afterwards the folder cannot be opened as a log: an error names the location that the log was moved to.
Nothing in the folder is removed. If the command is killed, run it again.

With the kubeconfig of the management cluster (--kubeconfig or --context), a folder that lacks commits acknowledged there is refused.`,
		Example: kit.Examples(env, "$ log migrate --log /var/lib/scute --nats tls://nats:4222 --nats-creds archivist.creds --replicas 3"),
		Args:    cli.NoArgs,
	}
	o.addFlags(cmd, "Number of servers that must store the log", "folder's log")
	return o.command(env, cmd, func(ctx context.Context, _ []string) error { return o.run(ctx) }, "json")
}

type migrateReport struct {
	LogID string `json:"logID"`
	From  string `json:"from"`
	To    string `json:"to"`
	Last  uint64 `json:"last"`
	// Before is true if an earlier command had already moved the log.
	Before bool `json:"before,omitempty"`
}

func (o *migrateOptions) run(ctx context.Context) error {
	from, to := *o.Flags, *o.Flags
	from.URL, from.Creds, from.CA, from.Cert, from.Key = "", "", "", "", ""
	to.Dir, to.Local = "", false
	switch err := errors.Join(from.Check(), to.Check(), o.validate()); {
	case from.Dir == "" || to.URL == "":
		return cli.Usagef("--log and --nats are required: the folder of the stopped daemon, and the URL of the NATS server to move to")
	case err != nil:
		return err
	}
	if err := from.CheckExists(); err != nil {
		return err
	}
	before, moved, err := embedded.ReadMove(from.Dir)
	if err != nil {
		return err
	}
	if moved && before.To != eventlog.RedactURL(to.URL) {
		remedy := "back up the log there and restore it at the other location"
		if !before.Arrived {
			remedy = "remove the file scute.moved in the folder if the log never arrived there and that server is lost"
		}
		return fmt.Errorf("%w: log %s, earlier to %s: use that address, or %s", eventlog.ErrMoved, before.LogID, before.To, remedy)
	}
	if moved {
		arrived, err := o.alreadyMoved(ctx, to, before)
		if err != nil {
			return err
		}
		if arrived {
			return o.report(migrateReport{LogID: before.LogID, From: from.Dir, To: before.To, Last: before.Last, Before: true}, "already moved")
		}
	}
	out, err := o.move(ctx, from, to, moved)
	if err != nil {
		return err
	}
	return o.report(out, "moved")
}

// alreadyMoved reports whether the log already exists at its new location. A command that was
// killed may have left an incomplete stream there, which does not count as a log. A log that exists
// at its new location is never moved again, because it may have more commits than the folder.
func (o *migrateOptions) alreadyMoved(ctx context.Context, to connect.Flags, m embedded.Moved) (bool, error) {
	log, err := to.Log(ctx, o.Env.Err)
	switch {
	case (errors.Is(err, eventlog.ErrMissing) || errors.Is(err, eventlog.ErrConfig)) && !m.Arrived:
		return false, nil
	case err != nil && m.Arrived:
		return false, fmt.Errorf("log %s already arrived at %s, and is not moved there again: %w", m.LogID, m.To, err)
	case err != nil:
		return false, err
	}
	defer log.Close()
	head, err := log.Head(ctx)
	there := err == nil && log.ID() == m.LogID && head >= m.Last
	if err == nil && !there && m.Arrived {
		err = fmt.Errorf("log %s already arrived at %s with %s, and is not moved there again: that server has log %s with %s", m.LogID, m.To, commits(m.Last), log.ID(), commits(head))
	}
	return there, err
}

// move copies the log, compares the copy with the log, and records the move in the folder. again is
// true if an earlier command has already recorded the move.
func (o *migrateOptions) move(ctx context.Context, from, to connect.Flags, again bool) (out migrateReport, err error) {
	logger := connect.Logger(o.Env.Err)
	log, err := embedded.Open(ctx, embedded.Options{Dir: from.Dir, AllowMoved: again, Logger: logger})
	if errors.Is(err, eventlog.ErrLocked) {
		return out, fmt.Errorf("%w: stop the daemon first, and keep it stopped", err)
	}
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	stats, err := log.Stats(ctx)
	if err != nil {
		return out, err
	}
	out = migrateReport{LogID: log.ID(), From: from.Dir, To: eventlog.RedactURL(to.URL), Last: stats.Commits}
	if err := o.checkNewest(ctx, "the folder", out.LogID, out.Last, "use the folder that the daemon used last"); err != nil {
		return out, err
	}
	progress := o.Env.Progress()
	defer progress.Done()
	note := embedded.Moved{LogID: out.LogID, Last: out.Last, To: out.To, Time: o.Env.Now().UTC()}
	r, err := backup.LogSource(ctx, log,
		func(doing string, seq, head uint64) { progress.Showf("%s: %d of %d commits", doing, seq, head) },
		func() error { return embedded.RecordMove(from.Dir, note) })
	if err != nil {
		return out, err
	}
	r.OnWait = func(what string) { progress.Showf("waiting %s", what) }
	if err := o.restoreTo(ctx, &to, logger, int64(stats.MaxBytes), r); err != nil { //nolint:gosec // the server's value is an int64
		return out, err
	}
	note.Arrived = true
	return out, embedded.RecordMove(from.Dir, note)
}

func (o *migrateOptions) report(out migrateReport, done string) error {
	err := o.print(out, fmt.Sprintf("%s: log %s from %s to %s, %s; verified", done, out.LogID, out.From, out.To, commits(out.Last)))
	if err != nil || o.Format.Value != "" {
		return err
	}
	o.Env.Notef("Next: start the daemon with --nats-url %s (nats.url of the chart). It continues where it stopped.\n"+
		"The folder keeps the old log, which no daemon can open any longer: delete the folder when the daemon has run for a while.", out.To)
	return nil
}

func commits(last uint64) string {
	if last == 0 {
		return "no commits"
	}
	return fmt.Sprintf("commits 1 to %d", last)
}
