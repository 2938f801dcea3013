package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

func newCmdProve(env *cli.Env) *cobra.Command {
	o := newOptions(env)
	cmd := &cobra.Command{
		Use:   "prove EVENT",
		Short: "Write a proof that an event is in the log; the public key is enough to check it",
		Long: `Write a proof that an event is in the log. The public key is enough to check it.

EVENT is the sequence of the commit, or the ID of one of its events. The proof contains the commit, the path from it to the root of
the log, and the checkpoint. It is text in the format C2SP tlog-proof, which ` + "`" + env.Name + ` audit check` + "`" + ` reads.`,
		Example: kit.Examples(env, "$ audit prove 17 > event.tlog-proof", "$ audit prove move-1a2b3c4d/0 > event.tlog-proof"),
	}
	o.addFlags(cmd)
	o.addCheckpoint(cmd)
	return o.command(cmd, 1, "the sequence of a commit or the ID of an event", func(ctx context.Context, args []string) error { return o.prove(ctx, args[0]) })
}

func (o *options) prove(ctx context.Context, event string) error {
	p, err := o.published(ctx)
	if err != nil {
		return err
	}
	seq, err := strconv.ParseUint(event, 10, 63)
	if err != nil {
		if seq, err = o.find(ctx, event); err != nil {
			return err
		}
	}
	var last uint64
	proof, err := p.prove(seq, func(prover *seal.Prover) error {
		return o.each(ctx, func(m eventlog.Record) error { prover.Add(m); last = m.Seq; return nil })
	})
	if errors.Is(err, seal.ErrProof) && o.export != "" && last < p.newest.Size {
		return fmt.Errorf("%s ends at commit %d, but the checkpoint covers commits up to %d: use an older checkpoint; a backup contains one, which is used without --checkpoint", o.export, last, p.newest.Size)
	}
	if errors.Is(err, seal.ErrProof) {
		o.Env.Notef("%s: %v", o.Env.Name, err)
		return cli.SilentExit(exitViolated)
	}
	if err == nil {
		_, err = o.Env.Out.Write(proof)
	}
	return err
}

func (o *options) each(ctx context.Context, fn func(eventlog.Record) error) error {
	src, err := o.source(ctx)
	if err != nil {
		return err
	}
	return errors.Join(src.each(ctx, fn), src.close())
}

func (o *options) find(ctx context.Context, id string) (uint64, error) {
	if o.export == "-" {
		return 0, cli.Usagef("standard input can be read only once: give the sequence of the commit instead of an ID")
	}
	var found []uint64
	err := o.each(ctx, func(m eventlog.Record) error {
		events, err := m.Events()
		if err != nil {
			return nil //nolint:nilerr // an unreadable commit contains no event of that ID
		}
		for _, e := range events {
			if e.ID == id && !slices.Contains(found, m.Seq) {
				found = append(found, m.Seq)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case len(found) == 0:
		return 0, fmt.Errorf("the log has no event %s: %s lists all events", id, o.Hint("", "log", "tail", "--lines", "-1", "-o", "json"))
	case len(found) > 1:
		return 0, fmt.Errorf("event %s is in several commits (%s): give the sequence of one of them", id, strings.Trim(fmt.Sprint(found), "[]"))
	}
	return found[0], nil
}
