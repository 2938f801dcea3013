package eventlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// TestWritersMakeOneHistory checks that with concurrent writers, every commit follows the commit that it was decided
// on.
func TestWritersMakeOneHistory(t *testing.T) {
	host := openTest(t, embedded.Options{Listen: "127.0.0.1:0"})
	logs := []*eventlog.Log{host}
	for range 2 {
		logs = append(logs, connectTest(t, eventlog.ExternalOptions{URL: host.URL()}))
	}
	checkOneHistory(t, logs, 50)
}

// checkOneHistory appends with concurrent writers to a few aggregates through several handles of one log; checks is the
// number of repetitions.
func checkOneHistory(t *testing.T, logs []*eventlog.Log, checks int) {
	before := flag.Lookup("rapid.checks").Value.String()
	defer func() { _ = flag.Set("rapid.checks", before) }()
	if err := flag.Set("rapid.checks", strconv.Itoa(checks)); err != nil {
		t.Fatal(err)
	}
	var run atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		writers := rapid.IntRange(2, 6).Draw(rt, "writers")
		commits := rapid.IntRange(1, 6).Draw(rt, "commits")
		spread := rapid.IntRange(1, 3).Draw(rt, "aggregates")
		aggregates := make([]eventlog.Aggregate, spread)
		for i := range aggregates {
			aggregates[i] = moveOf(fmt.Sprintf("run %d/%d", run.Add(1), i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g, ctx := errgroup.WithContext(ctx)
		for w := range writers {
			g.Go(func() error {
				for n := range commits {
					if err := appendWithRetry(ctx, logs[w%len(logs)], aggregates[n%spread], fmt.Sprintf("w%d-%d", w, n)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			rt.Fatal(err)
		}
		total := 0
		for _, a := range aggregates {
			total += checkChain(rt, logs[0], a)
		}
		if total != writers*commits {
			rt.Fatalf("%d commits are stored, %d were acknowledged", total, writers*commits)
		}
	})
}

// appendWithRetry decides and appends again until it has no conflict.
func appendWithRetry(ctx context.Context, l *eventlog.Log, a eventlog.Aggregate, id string) error {
	for {
		records, err := l.Read(ctx, a, 0)
		if err != nil {
			return err
		}
		var last uint64
		if n := len(records); n > 0 {
			last = records[n-1].Seq
		}
		c := commit(a, id, last, 1)
		c.Events[0].Data = json.RawMessage(fmt.Sprintf(`{"follows":%d}`, last))
		r, err := l.Append(ctx, c)
		if errors.Is(err, eventlog.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		// An acknowledged commit is visible at once: appending it again returns AlreadyStored.
		if again, err := l.Append(ctx, c); err != nil || !again.AlreadyStored || again.Seq != r.Seq {
			return fmt.Errorf("%s: stored at %d, then %+v, %w", id, r.Seq, again, err)
		}
		return nil
	}
}

// checkChain checks that each commit was decided on its predecessor, and returns the number of commits.
func checkChain(t *rapid.T, l *eventlog.Log, a eventlog.Aggregate) int {
	records, err := l.Read(context.Background(), a, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var last uint64
	for _, r := range records {
		events, err := r.Events()
		if err != nil {
			t.Fatal(err)
		}
		var data struct{ Follows uint64 }
		if err := json.Unmarshal(events[0].Data, &data); err != nil {
			t.Fatal(err)
		}
		if data.Follows != last || seen[r.CommitID] {
			t.Fatalf("commit %s at %d was decided on %d, but follows %d (duplicate: %t)", r.CommitID, r.Seq, data.Follows, last, seen[r.CommitID])
		}
		seen[r.CommitID] = true
		last = r.Seq
	}
	return len(records)
}
