package logcmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
	"scute.dev/view"
)

// census is the content of the log, counted during a replay.
type census struct {
	Head       uint64             `json:"head"`
	Commits    uint64             `json:"commits"`
	Events     uint64             `json:"events"`
	Types      map[string]uint64  `json:"types"`
	Aggregates []*aggregateCensus `json:"aggregates"`
	// Moves, Runs and Remediations count by phase. Remediations counts machines: the marked
	// machines, and the machines of the last remediations that ended.
	Moves        map[string]uint64 `json:"movesByPhase"`
	Runs         map[string]uint64 `json:"runsByPhase,omitempty"`
	Remediations map[string]uint64 `json:"remediationsByPhase,omitempty"`
	// States is the SHA-256 of the states of all aggregates, with --verify.
	States string `json:"statesSha256,omitempty"`
	// Unreadable counts the commits that this program cannot apply, by the error.
	Unreadable map[string]uint64 `json:"unreadable,omitempty"`

	byName map[eventlog.Aggregate]*aggregateCensus
}

type aggregateCensus struct {
	Aggregate string    `json:"aggregate"`
	Commits   uint64    `json:"commits"`
	First     uint64    `json:"first"`
	Last      uint64    `json:"last"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until"`
	Phase     string    `json:"phase,omitempty"`
	// Hash is the SHA-256 of the state's JSON, with --verify.
	Hash string `json:"sha256,omitempty"`

	name eventlog.Aggregate
	fold feed.Fold // nil for a kind that cannot be replayed
	err  error     // why an event cannot be read
}

func newCensus() *census {
	return &census{Types: map[string]uint64{}, Unreadable: map[string]uint64{}, byName: map[eventlog.Aggregate]*aggregateCensus{}}
}

func (c *census) add(r eventlog.Record) {
	c.Commits++
	for _, t := range r.Types() {
		c.Types[t]++
		c.Events++
	}
	a := c.byName[r.Aggregate]
	if a == nil {
		a = &aggregateCensus{Aggregate: r.Aggregate.String(), First: r.Seq, Since: r.Stored, name: r.Aggregate, fold: feed.NewFold(r.Aggregate)}
		c.byName[r.Aggregate] = a
	}
	a.Commits, a.Last, a.Until = a.Commits+1, r.Seq, r.Stored
	if a.fold != nil && a.err == nil {
		a.err = cmp.Or(a.fold.Apply(r), a.fold.Err())
	}
	if a.err != nil {
		c.Unreadable[a.err.Error()]++
	}
}

// close counts the objects by phase. The commands of their documents are not used.
func (c *census) close(k *kit.Kit, head uint64) {
	c.Head = head
	phases := map[string]map[string]uint64{"move": {}} // moves are printed even if there are none
	for _, a := range c.byName {
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
	c.Aggregates = slices.SortedFunc(maps.Values(c.byName), func(a, b *aggregateCensus) int { return cmp.Compare(a.First, b.First) })
}

// all replays the whole log.
func (o *replayOptions) all(ctx context.Context, log *connect.Log) error {
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	count, progress, start := newCensus(), o.Env.Progress(), o.Env.Now()
	head, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		count.add(r)
		progress.Showf("replaying: %s %d of %d commits", cli.Bar(cli.Paint{}, cli.Plain, int(r.Seq), int(head), 24), r.Seq, head) //nolint:gosec // sequences are small
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
	if err := o.census(count, log); err != nil {
		return err
	}
	if took := o.Env.Now().Sub(start); took > 0 {
		o.Env.Notef("Replayed in %s, %.0f commits per second.", view.Duration(took.Round(time.Millisecond)), float64(count.Commits)/took.Seconds())
	}
	return differ
}

// verify reads each aggregate separately, up to the end of the replay, and hashes its state. differ
// names the aggregates whose commits differ from the commits of the replay.
func (o *replayOptions) verify(ctx context.Context, log *connect.Log, c *census) (differ, err error) {
	upTo := *o
	upTo.At = c.Head
	sum := sha256.New()
	var names []string
	for _, a := range c.Aggregates {
		if a.fold == nil {
			continue
		}
		f, err := upTo.fold(ctx, log, a.name)
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err != nil:
			names = append(names, fmt.Sprintf("%s: %v", a.Aggregate, err))
			continue
		case f.Commits != int(a.Commits) || f.Sequence != a.Last: //nolint:gosec // far below 2^63
			names = append(names, fmt.Sprintf("%s: the replay has %d commits up to %d, a separate read has %d up to %d", a.Aggregate, a.Commits, a.Last, f.Commits, f.Sequence))
		}
		a.Hash = f.Hash
		sum.Write([]byte(a.Aggregate + " " + f.Hash + "\n"))
	}
	c.States = hex.EncodeToString(sum.Sum(nil))
	if len(names) > 0 {
		return fmt.Errorf("the log differs from its replay:\n  %s", strings.Join(names, "\n  ")), nil
	}
	return nil, nil
}

// maxListed is the maximum number of aggregates that are shown. The last aggregates are shown.
const maxListed = 50

func (o *replayOptions) census(c *census, log *connect.Log) error {
	v := o.View()
	out := []string{
		fmt.Sprintf("Log           %s, ID %s", log.Where, log.ID()),
		fmt.Sprintf("Commits       %d, sequences 1 to %d without a gap", c.Commits, c.Head),
		fmt.Sprintf("Events        %d of %d types", c.Events, len(c.Types)),
		fmt.Sprintf("Aggregates    %d", len(c.Aggregates)),
	}
	if c.Head == 0 {
		out[1] = "Commits       none yet"
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
	return o.Print(out)
}
