package logcmd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// deps is the common environment of all log commands.
type deps struct{ *kit.Kit }

// NewCmd returns `scutectl log`.
func NewCmd(env *cli.Env) *cobra.Command {
	return kit.Group("log", "Read the event log: what was decided and done, by whom",
		`Read the event log: what was decided and done, by whom.

The log is read from the daemon's pod through a port-forward, from the folder of a stopped daemon (--log) or of local runs
(--local), or from a NATS server (--nats).`,
		newCmdStatus(env), newCmdTail(env), newCmdGrep(env), newCmdShow(env), newCmdChain(env), newCmdExport(env), newCmdReplay(env), newCmdSchema(env), newCmdReconcile(env),
		newCmdMigrate(env))
}

func (d *deps) open(ctx context.Context) (*connect.Log, error) {
	if err := d.Flags.Check(); err != nil {
		return nil, err
	}
	return d.Flags.Log(ctx, d.Env.Err)
}

// read opens the log, and calls fn with it.
func (d *deps) read(ctx context.Context, fn func(context.Context, *connect.Log) error) error {
	log, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	return fn(ctx, log)
}

func (d *deps) openToAppend(ctx context.Context) (*connect.Log, error) {
	if err := d.Flags.Check(); err != nil {
		return nil, err
	}
	return d.Flags.LogToAppend(ctx, d.Env.Err)
}

// aggregateVar registers --aggregate, with completion from the log's aggregates.
func (d *deps) aggregateVar(cmd *cobra.Command, aggregate *string, usage string) {
	cmd.Flags().StringVar(aggregate, "aggregate", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("aggregate", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return d.aggregates(cmd.Context(), typed), cobra.ShellCompDirectiveNoFileComp
	})
}

func (d *deps) aggregates(ctx context.Context, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, kit.CompleteTimeout)
	defer cancel()
	log, err := d.open(ctx)
	if err != nil {
		return nil
	}
	defer log.Close()
	names := make(map[string]bool)
	_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		if name := r.Aggregate.String(); strings.HasPrefix(name, typed) {
			names[name] = true
		}
		return nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return slices.Sorted(maps.Keys(names))
}
