package logcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
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

A log is a sequence of streams, its epochs. Only the last one is appended to. All of them are read as one log. "kept" is what
is kept of the epochs up to that number, which were dropped (log drop).`,
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
		switch {
		case e.Dropped:
			state = "kept"
		case e.Closed:
			state = "closed"
		}
		if e.Last >= e.First {
			last, since, until = fmt.Sprint(e.Last), term.Second(e.Since), term.Second(e.Until)
		}
		t.Add(fmt.Sprint(e.Number), e.Stream, state, fmt.Sprint(e.First), last, since, until, fmt.Sprintf("%.1f MiB", float64(e.Bytes)/mib))
	}
	return t
}
