package uitest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/internal/pinned"
	"scute.dev/ui/feed"
)

// Histories writes saved histories to a log: those of all domains, or only those with the given
// names. Their events alternate, as in a log with many writers. root is the root of the repository.
func Histories(t testing.TB, log *eventlog.Log, root string, names ...string) {
	t.Helper()
	WriteInterleaved(t, log, SavedHistories(t, root, names...))
}

// History contains the events of one aggregate.
type History struct {
	Aggregate eventlog.Aggregate
	Events    []eventlog.Event
	last      uint64
}

// SavedHistories returns the saved histories of all domains, or only those with the given names.
func SavedHistories(t testing.TB, root string, names ...string) (list []*History) {
	t.Helper()
	for _, domain := range []struct {
		kind   eventlog.Kind
		folder string
	}{{eventlog.KindMove, "mover"}, {eventlog.KindRun, "workflow"}, {eventlog.KindRemediation, "remediator"}, {eventlog.KindPause, "pause/request"}} {
		files, err := filepath.Glob(filepath.Join(root, domain.folder, "testdata", "histories", "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no histories: %v", domain.folder, err)
		}
		for _, file := range files {
			events, err := pinned.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
			if len(names) == 0 || slices.Contains(names, name) {
				list = append(list, &History{Aggregate: eventlog.Aggregate{Kind: domain.kind, ID: "fleet/" + name + "/1"}, Events: events})
			}
		}
	}
	return list
}

// WriteInterleaved writes histories to a log. It writes up to three events of each history in turn.
func WriteInterleaved(t testing.TB, log *eventlog.Log, list []*History) {
	t.Helper()
	for more := true; more; {
		more = false
		for _, h := range list {
			more = h.append(t, log) || more
		}
	}
}

// append appends up to three events in one commit, and reports whether there were any.
func (h *History) append(t testing.TB, log *eventlog.Log) bool {
	t.Helper()
	if len(h.Events) == 0 {
		return false
	}
	n := min(3, len(h.Events))
	h.last = Append(t, log, h.Aggregate, h.last, h.Events[:n]...)
	h.Events = h.Events[n:]
	return true
}

// Append appends a commit and returns its sequence.
func Append(t testing.TB, log *eventlog.Log, of eventlog.Aggregate, last uint64, events ...eventlog.Event) uint64 {
	t.Helper()
	c := eventlog.Commit{Aggregate: of, Expected: last, Events: events}
	c.ID = c.IDFor("test")
	receipt, err := log.Append(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Seq
}

// Fill adds the commits of a log to a feed. It derives the times of the commits from their
// sequences, so that pages are reproducible.
func Fill(t testing.TB, f *feed.Feed, log *eventlog.Log) {
	t.Helper()
	_, err := log.Replay(t.Context(), f.Commits.Head(), func(r eventlog.Record) error {
		return f.Apply(eventlog.NewRecord(r.Seq, Stored(r.Seq), r.Subject(), r.Header(), r.Data()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Stored returns the time that Fill uses for a commit.
func Stored(seq uint64) time.Time {
	return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Second) //nolint:gosec // sequences of tests are small
}

// Feed returns an empty feed that is closed at the end of the test.
func Feed(t testing.TB) *feed.Feed {
	t.Helper()
	commits, err := feed.NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := commits.Close(); err != nil {
			t.Error(fmt.Errorf("closing the spool: %w", err))
		}
	})
	return feed.New(commits)
}

// Markup is a hostile name or message: it closes an attribute, a tag and a comment, adds an
// element, and changes the direction of text.
const Markup = "\"'>--></script><hostile onclick=alert(1)>`javascript:alert(1)\u202e\u009b"
