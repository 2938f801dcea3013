package logcmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
)

type replayOptions struct {
	deps
	Aggregate string
	At        uint64
	Verify    bool
	Format    cli.Format
}

func newCmdReplay(env *cli.Env) *cobra.Command {
	o := &replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Replay the log from its first event, and show the result",
		Long: `Replay the log from its first event, and show the result.

With --aggregate the result is the state of that aggregate, now or after the commit --at, and the state's hash: the
same events always give the same hash. Without it, the result is a summary: the number of events of each type, the aggregates, and
whether the log is complete.

With --verify it also reads each aggregate separately, compares its commits with those of the replay, and
prints a hash of all their states: two copies of a log with the same commits have the same hash. It exits with status 1 if
an aggregate differs.`,
		Example: kit.Examples(env, "$ log replay", "$ log replay --aggregate move/fleet/prod/1a2b3c4d --at 17", "$ log replay --verify"),
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("at") && o.At == 0 {
				return cli.Usagef("--at is 0: the first sequence is 1")
			}
			return o.run(cmd.Context())
		},
	}
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().StringVar(&o.Aggregate, "aggregate", "", "Replay this aggregate, KIND/ID, instead of all")
	_ = cmd.RegisterFlagCompletionFunc("aggregate", cobra.NoFileCompletions)
	cmd.Flags().Uint64Var(&o.At, "at", 0, "Stop after the commit of this sequence")
	cmd.Flags().BoolVar(&o.Verify, "verify", false, "Also read each aggregate separately, and hash all states")
	o.Format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *replayOptions) run(ctx context.Context) error {
	if o.At > 0 && o.Aggregate == "" {
		return cli.Usagef("--at needs --aggregate")
	}
	if o.Verify && o.Aggregate != "" {
		return cli.Usagef("--verify reads all aggregates: leave --aggregate out")
	}
	var aggregate eventlog.Aggregate
	if o.Aggregate != "" {
		var err error
		if aggregate, err = kit.ParseAggregate(o.Aggregate); err != nil {
			return err
		}
		if feed.NewFold(aggregate) == nil {
			return cli.Usagef("--aggregate %s: this kind cannot be replayed; %s shows its events", aggregate, o.Hint("", "log", "tail", "--aggregate", aggregate.String()))
		}
	}
	log, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	if o.Aggregate == "" {
		return interrupted(ctx, o.all(ctx, log))
	}
	f, err := o.fold(ctx, log, aggregate)
	if err != nil {
		return interrupted(ctx, err)
	}
	return o.show(f)
}

// foldResult is the state of an aggregate, computed from its events.
type foldResult struct {
	Aggregate eventlog.Aggregate
	// Sequence is the last applied commit, and Head the aggregate's last commit.
	Sequence, Head  uint64
	Commits, Events int
	// Hash is the SHA-256 of the state's JSON.
	Hash string

	state feed.Fold
}

func (o *replayOptions) fold(ctx context.Context, log *connect.Log, aggregate eventlog.Aggregate) (*foldResult, error) {
	records, err := log.Read(ctx, aggregate, 0)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("the log at %s has no aggregate %s: %s lists all aggregates", log.Where, aggregate, o.Hint("", "log", "replay"))
	}
	f := &foldResult{Aggregate: aggregate, Head: records[len(records)-1].Seq}
	if o.At > 0 && records[0].Seq > o.At {
		return nil, fmt.Errorf("--at %d: the first commit on %s is %d", o.At, aggregate, records[0].Seq)
	}
	for i, r := range records {
		if o.At > 0 && r.Seq > o.At {
			records = records[:i]
			break
		}
		f.Sequence, f.Commits, f.Events = r.Seq, f.Commits+1, f.Events+len(r.Types())
	}
	f.state = feed.NewFold(aggregate)
	for _, r := range records {
		if err := cmp.Or(f.state.Apply(r), f.state.Err()); err != nil {
			return nil, fmt.Errorf("replaying %s: %w", aggregate, err)
		}
	}
	data, err := json.Marshal(f.state.Content())
	if err != nil {
		return nil, fmt.Errorf("hashing the state of %s: %w", aggregate, err)
	}
	sum := sha256.Sum256(data)
	f.Hash = hex.EncodeToString(sum[:])
	return f, nil
}

func (o *replayOptions) show(f *foldResult) error {
	if o.Format.Value != "" {
		name, object := f.state.Object()
		return o.Format.Print(o.Env.Out, map[string]any{
			"aggregate": f.Aggregate.String(), "sequence": f.Sequence, "head": f.Head, "commits": f.Commits, "events": f.Events, "sha256": f.Hash, name: object,
		})
	}
	more := ""
	if f.Sequence < f.Head {
		more = fmt.Sprintf(" (the aggregate continues to %d)", f.Head)
	}
	return o.Print(append(f.state.Describe(o.View()), "",
		fmt.Sprintf("Replayed      %d commits, %d events, up to sequence %d%s", f.Commits, f.Events, f.Sequence, more),
		"State         sha256 "+f.Hash))
}
