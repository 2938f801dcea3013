package tracing

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/internal/pinned"
)

// folders maps kinds to the folders with saved histories of real runs, moves and remediations.
var folders = map[eventlog.Kind]string{eventlog.KindMove: "mover", eventlog.KindRun: "workflow", eventlog.KindRemediation: "remediator"}

// TestSpans compares the spans of every saved history. A span whose identifier changes would appear twice in a
// collector.
func TestSpans(t *testing.T) {
	datadriven.RunTest(t, "testdata/spans.txt", func(t *testing.T, d *datadriven.TestData) string {
		kind, name, _ := strings.Cut(d.CmdArgs[0].Key, "/")
		records := loadStored(t, eventlog.Kind(kind), name)
		f := New("a-log")
		var spans []Span
		for _, r := range records {
			ended, err := f.Apply(r)
			if err != nil {
				t.Fatal(err)
			}
			spans = append(spans, ended...)
		}
		return renderTree(spans, records) + fmt.Sprintf("open: %d\n", f.byStart.Len())
	})
}

// TestEveryHistoryIsDrawn checks that TestSpans includes every history.
func TestEveryHistoryIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	datadriven.Walk(t, "testdata/spans.txt", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			drawn[d.CmdArgs[0].Key] = true
			return d.Expected
		})
	})
	for _, h := range loadAll(t) {
		if name := string(h.aggregate.Kind) + "/" + h.name; !drawn[name] {
			t.Errorf("testdata/spans.txt lacks %q", "history "+name)
		}
	}
}

// TestContinued checks that a fold that is stopped anywhere and restarted after Since returns the same spans as one
// without interruption.
func TestContinued(t *testing.T) {
	records := interleaved(t)
	whole := New("a-log")
	type step struct {
		ended []Span
		since uint64
	}
	steps := make([]step, 0, len(records))
	for _, r := range records {
		ended, err := whole.Apply(r)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step{ended, whole.Since(r.Seq)})
	}
	rapid.Check(t, func(rt *rapid.T) {
		cut := rapid.IntRange(0, len(records)-1).Draw(rt, "cut")
		since := int(steps[cut].since) //nolint:gosec // small
		if since > cut+1 {
			rt.Fatalf("Since after commit %d = %d", cut+1, since)
		}
		f := New("a-log")
		for at := since; at < len(records); at++ {
			ended, err := f.Apply(records[at])
			if err != nil {
				rt.Fatal(err)
			}
			if at > cut && !reflect.DeepEqual(steps[at].ended, ended) {
				rt.Fatalf("stopped after %d, restarted after %d, commit %d: %s", cut+1, since, at+1, cmp.Diff(steps[at].ended, ended, attributes))
			}
		}
	})
	if last := steps[len(steps)-1].since; last == 0 {
		t.Error("Since never advances")
	}
}

// TestIdentifiersAreDistinct checks that no two spans of all histories in one log have the same identifier, and that
// each span's parent is in its trace.
func TestIdentifiersAreDistinct(t *testing.T) {
	f := New("a-log")
	seen := map[trace.SpanID]Span{}
	for _, r := range interleaved(t) {
		ended, err := f.Apply(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range ended {
			if other, ok := seen[s.SpanID]; ok {
				t.Errorf("%s and %s have the identifier %s", other.Name, s.Name, s.SpanID)
			}
			if !s.SpanID.IsValid() || !s.TraceID.IsValid() || s.End.Before(s.Start) {
				t.Errorf("invalid span %+v", s)
			}
			seen[s.SpanID] = s
		}
	}
	for _, s := range seen {
		if !s.Parent.IsValid() {
			continue
		}
		if above, ok := seen[s.Parent]; ok && above.TraceID != s.TraceID {
			t.Errorf("%s is in another trace than its parent %s", s.Name, above.Name)
		}
	}
}

// TestOtherLogOtherSpans checks that the same events in another log have other traces.
func TestOtherLogOtherSpans(t *testing.T) {
	of := eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/a/1"}
	if TraceID("one", of, "") == TraceID("two", of, "") || RootID("one", of) == RootID("two", of) {
		t.Error("two logs have the same trace")
	}
	if a, b := digest("ab", "c"), digest("a", "bc"); a == b {
		t.Error("digest does not separate its arguments")
	}
}

// TestUnreadable checks that a commit of a newer version is skipped, and that the fold continues.
func TestUnreadable(t *testing.T) {
	f := New("a-log")
	bad := eventlog.NewRecord(1, at, "scute.log.run.a", map[string][]string{"Ce-Type": {"dev.scute.run.unheard.v1"}}, []byte("{}"))
	if ended, err := f.Apply(bad); err == nil || len(ended) > 0 || f.byStart.Len() != 0 {
		t.Errorf("Apply = %v, error %v", ended, err)
	}
	if f.Since(1) != 1 {
		t.Errorf("Since = %d, want 1", f.Since(1))
	}
}

type history struct {
	aggregate eventlog.Aggregate
	name      string
	events    []eventlog.Event
	n         int
}

func loadAll(t *testing.T) (list []*history) {
	t.Helper()
	for _, kind := range []eventlog.Kind{eventlog.KindMove, eventlog.KindRemediation, eventlog.KindRun} {
		files, err := filepath.Glob(filepath.Join("..", "..", folders[kind], "testdata", "histories", "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no histories: %v", folders[kind], err)
		}
		for _, file := range files {
			list = append(list, load(t, kind, strings.TrimSuffix(filepath.Base(file), ".jsonl")))
		}
	}
	return list
}

func load(t *testing.T, kind eventlog.Kind, name string) *history {
	t.Helper()
	events, err := pinned.Load(filepath.Join("..", "..", folders[kind], "testdata", "histories", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return &history{aggregate: eventlog.Aggregate{Kind: kind, ID: "fleet/" + name + "/1"}, name: name, events: events}
}

// loadStored returns the commits of one history in a log.
func loadStored(t *testing.T, kind eventlog.Kind, name string) []eventlog.Record {
	t.Helper()
	return storeAll(t, load(t, kind, name))
}

// interleaved returns the interleaved commits of all histories in one log.
func interleaved(t *testing.T) []eventlog.Record {
	t.Helper()
	return storeAll(t, loadAll(t)...)
}

func storeAll(t *testing.T, list ...*history) (records []eventlog.Record) {
	t.Helper()
	for len(list) > 0 {
		for _, h := range list {
			k := min(1+h.n%3, len(h.events))
			records = append(records, h.commit(t, uint64(len(records)+1), h.events[:k]))
			h.events, h.n = h.events[k:], h.n+1
		}
		list = slices.DeleteFunc(list, func(h *history) bool { return len(h.events) == 0 })
	}
	return records
}

// commit returns a batch of events in its stored form.
func (h *history) commit(t *testing.T, seq uint64, events []eventlog.Event) eventlog.Record {
	t.Helper()
	batch := make([]eventlog.CloudEvent, len(events))
	for i, ev := range events {
		batch[i] = eventlog.CloudEvent{SpecVersion: "1.0", ID: fmt.Sprintf("%s-%d/%d", h.name, h.n, i), Type: ev.Type, Time: ev.Time, Actor: ev.Actor, Data: ev.Data}
	}
	data, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	r := eventlog.NewRecord(seq, events[0].Time, "scute.log."+string(h.aggregate.Kind)+"."+h.name, map[string][]string{"Content-Type": {"application/cloudevents-batch+json"}}, data)
	r.Aggregate = h.aggregate
	return r
}
