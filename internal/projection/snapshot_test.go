package projection

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/pinned"
	"scute.dev/internal/trust"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

// TestSnapshotEqualsReplay: of all saved histories at once, cut anywhere and as often as one likes, what is restored and continues
// is what a replay from zero gives, in every part.
func TestSnapshotEqualsReplay(t *testing.T) {
	records := histories(t)
	want := New(usage.Limits{})
	fold(t, want, records)
	if n := len(parts(t, want)); n < 30 {
		t.Fatalf("the histories make %d parts only", n)
	}
	rapid.Check(t, func(rt *rapid.T) {
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(records)), 1, 4).Draw(rt, "cuts")
		slices.Sort(cuts)
		v, done := New(usage.Limits{}), 0
		for _, cut := range cuts {
			fold(t, v, records[done:cut])
			v, done = restored(t, v), cut
		}
		fold(t, v, records[done:])
		same(t, want, v)
	})
}

// same compares the views part by part, so that it names what differs.
func same(t *testing.T, want, got *View) {
	t.Helper()
	wanted := parts(t, want)
	for name, data := range parts(t, got) {
		if wanted[name] != data {
			t.Errorf("%s is not what a replay from zero gives", name)
		}
		delete(wanted, name)
	}
	for name := range wanted {
		t.Errorf("%s is missing", name)
	}
	a, err := projector.Hash(want)
	b, err2 := projector.Hash(got)
	if err != nil || err2 != nil || a != b {
		t.Errorf("hashes %s %v, %s %v", a, err, b, err2)
	}
}

func parts(t *testing.T, v *View) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := v.Snapshot(func(name string, data []byte) error {
		if _, twice := out[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		out[name] = string(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func restored(t *testing.T, v *View) *View {
	t.Helper()
	again := New(usage.Limits{})
	again.keptBytes, again.sweepEvery = v.keptBytes, v.sweepEvery
	if err := v.Snapshot(again.Restore); err != nil {
		t.Fatal(err)
	}
	return again
}

func fold(t *testing.T, v *View, records []eventlog.Record) {
	t.Helper()
	for _, r := range records {
		if err := v.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
}

// histories are the saved histories of all domains, their events in turn, with what the log says of itself before them.
func histories(t *testing.T) []eventlog.Record {
	t.Helper()
	log := logtest.Open(t)
	bound, err := trust.Commit(trust.Bound{Cluster: "one"}, "test", 0, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	list := load(t)
	for more := true; more; {
		more = false
		for _, h := range list {
			more = h.append(t, log) || more
		}
	}
	var records []eventlog.Record
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error {
		records = append(records, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return records
}

type history struct {
	of     eventlog.Aggregate
	events []eventlog.Event
	last   uint64
}

func load(t *testing.T) (list []*history) {
	t.Helper()
	for kind, folder := range map[eventlog.Kind]string{eventlog.KindMove: "mover", eventlog.KindRun: "workflow", eventlog.KindRemediation: "remediator", eventlog.KindPause: "pause/request"} {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "testdata", "histories", "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no histories: %v", folder, err)
		}
		for i, file := range files {
			events, err := pinned.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, &history{of: eventlog.Aggregate{Kind: kind, ID: fmt.Sprintf("fleet-%d/%s", i%3, filepath.Base(file))}, events: events})
		}
	}
	return list
}

// append takes up to three events into one commit.
func (h *history) append(t *testing.T, log *eventlog.Log) bool {
	t.Helper()
	if len(h.events) == 0 {
		return false
	}
	n := min(3, len(h.events))
	c := eventlog.Commit{Aggregate: h.of, Expected: h.last, Events: h.events[:n]}
	c.ID = c.IDFor("test")
	receipt, err := log.Append(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	h.events, h.last = h.events[n:], receipt.Seq
	return true
}
