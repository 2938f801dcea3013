package kit

import (
	"context"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
)

// addAt registers --at, for commands that can show an earlier state.
func (k *Kit) addAt(cmd *cobra.Command) {
	cmd.Flags().Var(&k.At, "at", "State in the log after this commit or at this time: 812, 10m (before now), 2026-07-30T12:00:00Z or 2026-07-30")
}

// endAtPoint ends the log at the point --at, and prints which commit it is.
func (k *Kit) endAtPoint(ctx context.Context, log *connect.Log) error {
	if !k.At.IsSet() {
		return nil
	}
	r, err := k.last(ctx, log)
	if err != nil {
		return err
	}
	log.SetEnd(r.Seq)
	k.now = r.Stored
	if k.At.Seq == 0 {
		k.now = k.At.Time
	}
	k.Env.Notef("As it was after commit %d, stored %s (%s).\n", r.Seq, term.Ago(k.Env.Now(), r.Stored), term.Second(r.Stored))
	return nil
}

func (k *Kit) last(ctx context.Context, log *connect.Log) (eventlog.Record, error) {
	if k.At.Seq == 0 {
		now := k.Env.Now()
		if k.At.Resolve(now); k.At.Time.After(now) {
			return eventlog.Record{}, cli.Usagef("--at is %s, which is in the future", term.Second(k.At.Time))
		}
		return log.Last(ctx, k.At.Time)
	}
	head, err := log.Head(ctx)
	if err != nil {
		return eventlog.Record{}, err
	}
	if k.At.Seq > head {
		return eventlog.Record{}, cli.Usagef("--at is %d: the log at %s ends at commit %d", k.At.Seq, log.Where, head)
	}
	return log.At(ctx, k.At.Seq)
}
