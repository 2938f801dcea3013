package logcmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
	"scute.dev/view"
)

type replayOptions struct {
	deps
	Aggregate string
	At        uint64
	Verify    bool
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
	}
	cmd.Flags().StringVar(&o.Aggregate, "aggregate", "", "Replay this aggregate, KIND/ID, instead of all")
	_ = cmd.RegisterFlagCompletionFunc("aggregate", cobra.NoFileCompletions)
	cmd.Flags().Uint64Var(&o.At, "at", 0, "Stop after the commit of this sequence")
	cmd.Flags().BoolVar(&o.Verify, "verify", false, "Also read each aggregate separately, and hash all states")
	return o.command(env, cmd, func(ctx context.Context, _ []string) error {
		if cmd.Flags().Changed("at") && o.At == 0 {
			return cli.Usagef("--at is 0: the first sequence is 1")
		}
		return o.run(ctx)
	}, "json", "yaml", "jsonpath=...")
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
	log, err := o.OpenLog(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	if o.Aggregate == "" {
		return o.replayAll(ctx, log)
	}
	return o.replayOne(ctx, log, aggregate)
}

type replayed struct {
	Aggregate string    `json:"aggregate"`
	Commits   uint64    `json:"commits"`
	First     uint64    `json:"first"`
	Last      uint64    `json:"last"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Phase     string    `json:"phase,omitempty"`
	// Hash is the SHA-256 of the state, encoded as JSON.
	Hash string `json:"sha256,omitempty"`

	name   eventlog.Aggregate
	events int
	fold   feed.Fold // nil if the kind cannot be replayed
	err    error     // the reason why an event cannot be read
}

func newReplayed(a eventlog.Aggregate) *replayed {
	return &replayed{Aggregate: a.String(), name: a, fold: feed.NewFold(a)}
}

func (a *replayed) add(r eventlog.Record) {
	if a.First == 0 {
		a.First, a.Since = r.Seq, r.Stored
	}
	a.Commits, a.Last, a.Until, a.events = a.Commits+1, r.Seq, r.Stored, a.events+len(r.Types())
	if a.fold != nil && a.err == nil {
		a.err = cmp.Or(a.fold.Apply(r), a.fold.Err())
	}
}

// readOne replays an aggregate up to the commit until; 0 means all commits. head is the sequence of
// the aggregate's last commit.
func (o *replayOptions) readOne(ctx context.Context, log *connect.Log, aggregate eventlog.Aggregate, until uint64) (a *replayed, head uint64, err error) {
	records, err := log.Read(ctx, aggregate, 0)
	if err != nil {
		return nil, 0, err
	}
	if len(records) == 0 {
		return nil, 0, fmt.Errorf("the log at %s has no aggregate %s: %s lists all aggregates", log.Where, aggregate, o.Hint("", "log", "replay"))
	}
	a = newReplayed(aggregate)
	for _, r := range records {
		if head = r.Seq; until == 0 || r.Seq <= until {
			a.add(r)
		}
	}
	if a.Commits == 0 {
		return nil, 0, fmt.Errorf("--at %d: the first commit on %s is %d", until, aggregate, records[0].Seq)
	}
	if a.err != nil {
		return nil, 0, fmt.Errorf("replaying %s: %w", aggregate, a.err)
	}
	data, err := json.Marshal(a.fold.Content())
	if err != nil {
		return nil, 0, fmt.Errorf("hashing the state of %s: %w", aggregate, err)
	}
	sum := sha256.Sum256(data)
	a.Hash = hex.EncodeToString(sum[:])
	return a, head, nil
}

func (o *replayOptions) replayOne(ctx context.Context, log *connect.Log, aggregate eventlog.Aggregate) error {
	a, head, err := o.readOne(ctx, log, aggregate, o.At)
	if err != nil {
		return err
	}
	if o.Format.Value != "" {
		name, object := a.fold.Object()
		return o.Format.Print(o.Env.Out, map[string]any{
			"aggregate": a.Aggregate, "sequence": a.Last, "head": head, "commits": a.Commits, "events": a.events, "sha256": a.Hash, name: object,
		})
	}
	more := ""
	if a.Last < head {
		more = fmt.Sprintf(" (the aggregate continues to %d)", head)
	}
	return o.Print(append(a.fold.Describe(o.View()), "",
		fmt.Sprintf("Replayed      %d commits, %d events, up to sequence %d%s", a.Commits, a.events, a.Last, more),
		"State         sha256 "+a.Hash))
}

type census struct {
	Head       uint64            `json:"head"`
	Commits    uint64            `json:"commits"`
	Events     uint64            `json:"events"`
	Types      map[string]uint64 `json:"types"`
	Aggregates []*replayed       `json:"aggregates"`
	// Moves, Runs and Remediations are counts by phase. Remediations counts machines: those that are
	// marked as unhealthy, and those of the last remediations that ended.
	Moves        map[string]uint64 `json:"movesByPhase"`
	Runs         map[string]uint64 `json:"runsByPhase,omitempty"`
	Remediations map[string]uint64 `json:"remediationsByPhase,omitempty"`
	// States is the SHA-256 of the states of all aggregates, with --verify.
	States string `json:"statesSha256,omitempty"`
	// Unreadable counts the commits that this program cannot apply, by error.
	Unreadable map[string]uint64 `json:"unreadable,omitempty"`

	byName map[eventlog.Aggregate]*replayed
}

func newCensus() *census {
	return &census{Types: map[string]uint64{}, Unreadable: map[string]uint64{}, byName: map[eventlog.Aggregate]*replayed{}}
}

func (c *census) add(r eventlog.Record) {
	c.Commits++
	for _, t := range r.Types() {
		c.Types[t]++
		c.Events++
	}
	a := c.byName[r.Aggregate]
	if a == nil {
		a = newReplayed(r.Aggregate)
		c.byName[r.Aggregate] = a
		c.Aggregates = append(c.Aggregates, a)
	}
	if a.add(r); a.err != nil {
		c.Unreadable[a.err.Error()]++
	}
}

func (c *census) close(k *kit.Kit, head uint64) {
	c.Head = head
	phases := map[string]map[string]uint64{"move": {}} // moves are printed even if there are none
	for _, a := range c.Aggregates {
		if a.fold == nil {
			continue
		}
		for _, d := range a.fold.Documents(k) {
			if phases[d.Kind] == nil {
				phases[d.Kind] = make(map[string]uint64)
			}
			phases[d.Kind][d.Phase]++
			a.Phase = d.Phase
		}
		if owner, ok := a.fold.(*remediation.Fold); ok {
			a.Phase = owner.Summary()
		}
	}
	c.Moves, c.Runs, c.Remediations = phases["move"], phases["run"], phases["machine"]
}

func (o *replayOptions) replayAll(ctx context.Context, log *connect.Log) error {
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	count, progress, start := newCensus(), o.Env.Progress(), o.Env.Now()
	head, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		count.add(r)
		progress.Showf("replaying: %d of %d commits", r.Seq, head)
		return nil
	})
	progress.Done()
	if err != nil {
		return err
	}
	count.close(o.Kit, head)
	var differ error
	if o.Verify {
		if differ, err = o.verify(ctx, log, count); err != nil {
			return err
		}
	}
	if o.Format.Value != "" {
		return cmp.Or(o.Format.Print(o.Env.Out, count), differ)
	}
	if err := o.Print(count.lines(o.View(), log)); err != nil {
		return err
	}
	if took := o.Env.Now().Sub(start); took > 0 {
		o.Env.Notef("Replayed in %s, %.0f commits per second.", view.Duration(took.Round(time.Millisecond)), float64(count.Commits)/took.Seconds())
	}
	return differ
}

// verify reads each aggregate separately, up to the end of the replay, and hashes its state. The
// error differ names the aggregates whose commits are not those of the replay.
func (o *replayOptions) verify(ctx context.Context, log *connect.Log, c *census) (differ, err error) {
	sum := sha256.New()
	var names []string
	for _, a := range c.Aggregates {
		if a.fold == nil {
			continue
		}
		alone, _, err := o.readOne(ctx, log, a.name, c.Head)
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err != nil:
			names = append(names, fmt.Sprintf("%s: %v", a.Aggregate, err))
			continue
		case alone.Commits != a.Commits || alone.Last != a.Last:
			names = append(names, fmt.Sprintf("%s: the replay has %d commits up to %d, a separate read has %d up to %d", a.Aggregate, a.Commits, a.Last, alone.Commits, alone.Last))
		}
		a.Hash = alone.Hash
		sum.Write([]byte(a.Aggregate + " " + a.Hash + "\n"))
	}
	c.States = hex.EncodeToString(sum.Sum(nil))
	if len(names) > 0 {
		return fmt.Errorf("the log differs from its replay:\n  %s", strings.Join(names, "\n  ")), nil
	}
	return nil, nil
}

// maxListed limits the list to the aggregates that changed last.
const maxListed = 50

func (c *census) lines(v kit.View, log *connect.Log) []string {
	commits := "none yet"
	if c.Head > 0 {
		commits = fmt.Sprintf("%d, sequences 1 to %d without a gap", c.Commits, c.Head)
	}
	out := []string{
		fmt.Sprintf("Log           %s, ID %s", log.Where, log.ID()),
		"Commits       " + commits,
		fmt.Sprintf("Events        %d of %d types", c.Events, len(c.Types)),
		fmt.Sprintf("Aggregates    %d", len(c.Aggregates)),
	}
	if c.States != "" {
		out = append(out, "States        sha256 "+c.States)
	}
	for err, n := range c.Unreadable {
		out = append(out, v.Paint.Text(cli.Red, fmt.Sprintf("Not readable  %d commits: %s", n, err)))
	}
	types := cli.Table{Header: []string{"TYPE", "EVENTS"}, Indent: "  "}
	for _, t := range slices.Sorted(maps.Keys(c.Types)) {
		types.Add(t, fmt.Sprint(c.Types[t]))
	}
	table := cli.Table{Header: []string{"AGGREGATE", "COMMITS", "FIRST", "LAST", "LAST EVENT", "PHASE"}, Indent: "  "}
	for _, a := range c.Aggregates[max(0, len(c.Aggregates)-maxListed):] {
		table.Add(a.Aggregate, fmt.Sprint(a.Commits), fmt.Sprint(a.First), fmt.Sprint(a.Last), cli.Second(a.Until)+" ("+cli.Ago(v.Now, a.Until)+")", a.Phase)
	}
	if len(types.Rows) > 0 {
		out = append(append(out, ""), types.Lines(v.Paint, v.Width)...)
		out = append(append(out, ""), table.Lines(v.Paint, v.Width)...)
	}
	if more := len(c.Aggregates) - maxListed; more > 0 {
		out = append(out, fmt.Sprintf("  and %s: -o json lists all", view.Count(more, "earlier one")))
	}
	return out
}
