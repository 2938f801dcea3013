package logcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
)

type epochsOptions struct {
	deps
	Format output.Format
}

func newCmdEpochs(env *cli.Env) *cobra.Command {
	o := &epochsOptions{}
	cmd := &cobra.Command{
		Use:   "epochs",
		Short: "List the epochs of the log: their streams, sequences, times and sizes",
		Long: `List the epochs of the log: their streams, sequences, times and sizes.

A log is a sequence of streams, its epochs. Only the last one is appended to. All of them are read as one log.`,
		Example: kit.Examples(env, "$ log epochs", "$ log epochs -o json"),
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.Kit = kit.New(env, cmd, "")
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *epochsOptions) run(ctx context.Context) error {
	if err := o.Format.Validate(); err != nil {
		return err
	}
	log, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	epochs, err := log.Epochs(ctx)
	if err != nil {
		return err
	}
	if o.Format.Value != "" {
		return o.Format.Print(o.Env.Out, struct {
			Epochs []eventlog.Epoch `json:"epochs"`
		}{epochs})
	}
	v := o.View()
	return o.Print(epochTable(epochs).Lines(v.Paint, v.Width))
}

func epochTable(epochs []eventlog.Epoch) *term.Table {
	const mib = 1 << 20
	t := &term.Table{Header: []string{"EPOCH", "STREAM", "STATE", "FIRST", "LAST", "SINCE", "UNTIL", "SIZE"}}
	for _, e := range epochs {
		state, last, since, until := "open", "-", "-", "-"
		if e.Closed {
			state = "closed"
		}
		if e.Last >= e.First {
			last, since, until = fmt.Sprint(e.Last), term.Second(e.Since), term.Second(e.Until)
		}
		t.Add(fmt.Sprint(e.Number), e.Stream, state, fmt.Sprint(e.First), last, since, until, fmt.Sprintf("%.1f MiB", float64(e.Bytes)/mib))
	}
	return t
}

type closeOptions struct {
	deps
	Reason string
}

func newCmdClose(env *cli.Env) *cobra.Command {
	o := &closeOptions{}
	cmd := &cobra.Command{
		Use:   "close --reason WHY",
		Short: "Close the open epoch of the log, and continue the log in a new stream",
		Long: `Close the open epoch of the log, and continue the log in a new stream.

Sequences continue, and the closed epoch is still read and verified with the rest: see the epochs with "log epochs". The new
stream has room for as much as the closed one was allowed, and the volume or the NATS server needs space for both. A closed
epoch is sealed: it is not appended to any more, and it cannot be opened again.

The daemon may continue meanwhile: what it appends waits for a moment. If the command dies in the middle, the daemon ends what
it began, and so does the command when it is run again. On a NATS server it needs the permissions of the daemon, and those for
the next stream. The tokens of the log in a daemon's pod do not have them: stop the daemon, and run the command on its folder.`,
		Example: kit.Examples(env, "$ log close --local --reason 'end of 2026'", "$ log close --nats tls://nats:4222 --nats-creds daemon.creds --reason 'nearly full'"),
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return interrupted(cmd.Context(), o.run(cmd.Context())) },
	}
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "Why: it is recorded in the log")
	return cmd
}

func (o *closeOptions) run(ctx context.Context) error {
	if o.Reason == "" {
		return cli.Usagef("--reason is missing: say why the epoch is closed; it is recorded in the log")
	}
	log, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	if log.Guarded {
		return fmt.Errorf("the log in %s lets nobody but the daemon close an epoch: stop it, and run the command with --log in a pod that has its volume, "+
			"as in a restore; or, if the log is nearly full, raise log.maxBytes of the chart", log.Where)
	}
	var cluster *connect.Cluster
	if !o.Flags.LogAlone() {
		if cluster, err = o.Flags.Cluster(); err != nil {
			return err
		}
	}
	before, err := log.Epochs(ctx)
	if err != nil {
		return err
	}
	if err := log.CloseEpoch(ctx, eventlog.Closing{Actor: connect.Actor(ctx, cluster), Reason: o.Reason, Time: o.Env.Now()}); err != nil {
		return err
	}
	after, err := log.Epochs(ctx)
	if err != nil {
		return err
	}
	if len(after) == len(before) {
		return fmt.Errorf("epoch %d of the log at %s is still open: run the command again", len(before), log.Where)
	}
	closed, open := after[len(before)-1], after[len(after)-1]
	_, err = fmt.Fprintf(o.Env.Out, "closed: epoch %d of log %s at %s, commits %d to %d; the log continues in stream %s\n",
		closed.Number, log.ID(), log.Where, closed.First, closed.Last, open.Stream)
	return err
}
