package logcmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/filter"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/move"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/cmd/ctl/run"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/pause/request"
	"scute.dev/remediator"
)

type replayOptions struct {
	deps
	Aggregate string
	At        uint64
	Verify    bool
	Format    output.Format
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

With --verify it also reads each run, move, remediation and pause separately, compares its commits with those of the replay, and
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
	o.aggregateVar(cmd, &o.Aggregate, "Replay this aggregate, KIND/ID, instead of all")
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
		if aggregate, err = filter.ParseAggregate(o.Aggregate); err != nil {
			return err
		}
		if !slices.Contains(foldable(), aggregate.Kind) {
			return cli.Usagef("--aggregate %s: only runs, moves, remediations and pauses can be replayed; %s shows the events of other aggregates", aggregate, o.Hint("", "log", "tail", "--aggregate", aggregate.String()))
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

// foldable returns the kinds of aggregates that fold supports.
func foldable() []eventlog.Kind {
	return []eventlog.Kind{eventlog.KindMove, eventlog.KindRun, eventlog.KindRemediation, eventlog.KindPause}
}

// foldResult is the state of an aggregate, computed from its events.
type foldResult struct {
	Aggregate string `json:"aggregate"`
	// Sequence is the last applied commit, and Head the aggregate's last commit.
	Sequence uint64 `json:"sequence"`
	Head     uint64 `json:"head"`
	Commits  int    `json:"commits"`
	Events   int    `json:"events"`
	// Hash is the SHA-256 of the state's JSON.
	Hash  string          `json:"sha256"`
	Move  *v1alpha1.Move  `json:"move,omitempty"`
	Run   *run.Report     `json:"run,omitempty"`
	Pause *v1alpha1.Pause `json:"pause,omitempty"`
	// Remediations are the recorded remediations of the owner's machines.
	Remediations []*v1alpha1.SurgeRemediation `json:"remediations,omitempty"`

	run   *run.Run
	owner *remediator.Owner
}

func (o *replayOptions) fold(ctx context.Context, log *connect.Log, aggregate eventlog.Aggregate) (*foldResult, error) {
	records, err := log.Read(ctx, aggregate, 0)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("the log at %s has no aggregate %s: %s lists all aggregates", log.Where, aggregate, o.Hint("", "log", "replay"))
	}
	f := &foldResult{Aggregate: aggregate.String(), Head: records[len(records)-1].Seq}
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
	var state any
	switch aggregate.Kind {
	case eventlog.KindRun:
		state, err = f.foldRun(aggregate, records)
	case eventlog.KindRemediation:
		state, err = f.foldOwner(records)
	case eventlog.KindPause:
		state, err = f.foldPause(aggregate, records)
	default:
		state, err = f.foldMove(aggregate, records)
	}
	if err != nil {
		return nil, fmt.Errorf("replaying %s: %w", aggregate, err)
	}
	data, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("hashing the state of %s: %w", aggregate, err)
	}
	sum := sha256.Sum256(data)
	f.Hash = hex.EncodeToString(sum[:])
	return f, nil
}

// each folds commits in, until one cannot be.
func each(records []eventlog.Record, apply func(eventlog.Record) error) error {
	for _, r := range records {
		if err := apply(r); err != nil {
			return err
		}
	}
	return nil
}

func (f *foldResult) foldMove(aggregate eventlog.Aggregate, records []eventlog.Record) (any, error) {
	fold := move.NewFold(aggregate.ID, mover.NewCatalog())
	err := each(records, fold.Apply)
	f.Move = fold.Resource()
	return &fold.State, err
}

func (f *foldResult) foldPause(aggregate eventlog.Aggregate, records []eventlog.Record) (any, error) {
	var state request.State
	catalog := request.NewCatalog()
	err := each(records, func(r eventlog.Record) error { return catalog.Fold(r, state.Apply) })
	status := request.Status(&state)
	status.PauseID, status.LogSequence = aggregate.ID, int64(f.Sequence) //nolint:gosec // a sequence is far below 2^63
	f.Pause = pause.FromLog(state.Spec, status)
	return &state, err
}

// foldRun returns the visible state of a run: its definition, and the status of the run and of each task.
func (f *foldResult) foldRun(aggregate eventlog.Aggregate, records []eventlog.Record) (any, error) {
	fold := run.NewFold(aggregate.ID)
	err := each(records, fold.Apply)
	f.run = fold.Refresh()
	report := f.run.Report()
	f.Run = &report
	return struct {
		Definition string                     `json:"definition"`
		Status     v1alpha1.WorkflowRunStatus `json:"status"`
		Report     *run.Report                `json:"report"`
	}{fold.State.Hash, f.run.Status, f.Run}, err
}

// foldOwner returns the complete state of an owner of machines.
func (f *foldResult) foldOwner(records []eventlog.Record) (any, error) {
	fold := remediation.NewFold()
	err := each(records, fold.Apply)
	f.Remediations, f.owner = fold.Items(), &fold.State.Owner
	return &fold.State, err
}

func (o *replayOptions) show(f *foldResult) error {
	if o.Format.Value != "" {
		return o.Format.Print(o.Env.Out, f)
	}
	var lines []string
	switch v := o.View(); {
	case f.run != nil:
		lines = run.Describe(v, f.run)
	case f.Pause != nil:
		lines = pause.Describe(v, f.Pause)
	case f.owner != nil:
		lines = remediation.DescribeOwner(v, *f.owner, f.Remediations)
	default:
		lines = move.Describe(v, f.Move)
	}
	more := ""
	if f.Sequence < f.Head {
		more = fmt.Sprintf(" (the aggregate continues to %d)", f.Head)
	}
	return o.Print(append(lines, "",
		fmt.Sprintf("Replayed      %d commits, %d events, up to sequence %d%s", f.Commits, f.Events, f.Sequence, more),
		"State         sha256 "+f.Hash))
}
