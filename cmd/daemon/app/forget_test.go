package app

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/pinned"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/pause/request"
)

// statesOf returns the status of each object in the view as JSON, by the name of its aggregate.
func statesOf(t *testing.T, v *views) map[string]string {
	t.Helper()
	out := make(map[string]string)
	add := func(kind eventlog.Kind, id string, status any) {
		data, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		out[eventlog.Aggregate{Kind: kind, ID: id}.String()] = string(data)
	}
	for _, id := range v.Moves.IDs() {
		s, _ := v.Moves.Status(id)
		add(eventlog.KindMove, id, s)
	}
	for _, id := range v.Runs.IDs() {
		s, _ := v.Runs.Status(id)
		add(eventlog.KindRun, id, s)
	}
	for _, id := range v.Pauses.IDs() {
		s, _ := v.Pauses.Status(id)
		add(eventlog.KindPause, id, s)
	}
	return out
}

func fold(t *testing.T, v *views, records []eventlog.Record) {
	t.Helper()
	for _, r := range records {
		if err := v.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
}

// histories returns the saved histories of all domains, with their events interleaved, after the log's own event.
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
	aggregate eventlog.Aggregate
	events    []eventlog.Event
	last      uint64
}

func load(t *testing.T) (list []*history) {
	t.Helper()
	for kind, folder := range map[eventlog.Kind]string{eventlog.KindMove: "mover", eventlog.KindRun: "workflow", eventlog.KindRemediation: "remediator", eventlog.KindPause: "pause/request"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", folder, "testdata", "histories", "*.jsonl"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no histories: %v", folder, err)
		}
		for i, file := range files {
			events, err := pinned.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, &history{aggregate: eventlog.Aggregate{Kind: kind, ID: fmt.Sprintf("fleet-%d/%s", i%3, filepath.Base(file))}, events: events})
		}
	}
	return list
}

// append appends up to three events in one commit.
func (h *history) append(t *testing.T, log *eventlog.Log) bool {
	t.Helper()
	if len(h.events) == 0 {
		return false
	}
	n := min(3, len(h.events))
	c := eventlog.Commit{Aggregate: h.aggregate, Expected: h.last, Events: h.events[:n]}
	c.ID = c.IDFor("test")
	receipt, err := log.Append(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	h.events, h.last = h.events[n:], receipt.Seq
	return true
}

// TestWhatEndedLongAgoIsForgotten checks that a view forgets only ended objects, the latest one last, and that its
// other content equals that of a view that forgets nothing.
func TestWhatEndedLongAgoIsForgotten(t *testing.T) {
	records := histories(t)
	whole := newViews(usageLimits{})
	fold(t, whole, records)
	all := statesOf(t, whole)
	took := make(map[string]int) // by object of the log
	for _, r := range records {
		took[r.Aggregate.String()] += len(r.Subject()) + len(r.Data())
	}
	forgotten := 0
	rapid.Check(t, func(rt *rapid.T) {
		v := newViews(usageLimits{})
		v.keptBytes, v.sweepEvery = rapid.IntRange(0, 200_000).Draw(rt, "kept"), rapid.Uint64Range(1, 64).Draw(rt, "every")
		fold(t, v, records)
		have := statesOf(t, v)
		for name := range all {
			kind, id, _ := strings.Cut(name, "/")
			if said, known := have[name]; known {
				if said != all[name] {
					t.Errorf("%s differs from a view that forgets nothing", name)
				}
				continue
			}
			if forgotten++; !ended(whole, eventlog.Kind(kind), id) {
				t.Errorf("%s was forgotten although it has not ended", name)
			}
		}
		v.forget(v.keptBytes)
		kept := make(map[string]int)
		for name := range statesOf(t, v) {
			if kind, id, _ := strings.Cut(name, "/"); ended(v, eventlog.Kind(kind), id) {
				kept[kind] += took[name]
			}
		}
		for kind, bytes := range kept {
			if bytes > v.keptBytes {
				t.Errorf("ended objects of kind %s: %d bytes are kept, want at most %d", kind, bytes, v.keptBytes)
			}
		}
	})
	if forgotten == 0 {
		t.Error("nothing was forgotten")
	}
}

// TestOwnersAreForgotten checks that the view keeps each machine with an unfinished remediation, however many years
// pass and however often the view forgets.
func TestOwnersAreForgotten(t *testing.T) {
	records := histories(t)
	whole := newViews(usageLimits{})
	fold(t, whole, records)
	busy := countUnfinished(whole)
	rapid.Check(t, func(rt *rapid.T) {
		v := newViews(usageLimits{})
		v.sweepEvery = rapid.Uint64Range(1, 64).Draw(rt, "every")
		at, years := rapid.IntRange(0, len(records)).Draw(rt, "at"), rapid.IntRange(0, 3).Draw(rt, "years")
		for i, r := range records {
			if i >= at {
				r = eventlog.NewRecord(r.Seq, r.Stored.AddDate(years, 0, 0), r.Subject(), r.Header(), r.Data())
			}
			fold(t, v, []eventlog.Record{r})
		}
		if got := countUnfinished(v); got != busy {
			t.Errorf("%d machines have unfinished remediations, the view has %d", busy, got)
		}
	})
}

// TestRecall checks that the end of a forgotten object is read from the log, and that later commits about it change
// nothing.
func TestRecall(t *testing.T) {
	log := logtest.Open(t)
	over, open := "fleet/over", "fleet/open"
	catalog, pauses := mover.NewCatalog(), request.NewCatalog()
	last := make(map[eventlog.Aggregate]uint64)
	tell := func(a eventlog.Aggregate, e eventlog.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		e.Time, e.Actor = time.Now(), "user/test"
		c := eventlog.Commit{Aggregate: a, Expected: last[a], Events: []eventlog.Event{e}}
		c.ID = c.IDFor("test")
		receipt, err := log.Append(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		last[a] = receipt.Seq
	}
	move := func(id string, e mover.Event) {
		ev, err := catalog.Encode(e)
		tell(eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, ev, err)
	}
	pause := func(id string, e request.Event) {
		ev, err := pauses.Encode(e)
		tell(eventlog.Aggregate{Kind: eventlog.KindPause, ID: id}, ev, err)
	}
	for _, id := range []string{over, open} {
		move(id, mover.Requested{Spec: mover.Spec{Namespace: "fleet"}})
		pause(id, request.Requested{Spec: request.Spec{Namespace: "fleet"}})
	}
	move(over, mover.Abandoned{Reason: "a test"})
	pause(over, request.Released{})
	move(over, mover.Claimed{Holder: "another"}) // a commit after the end
	move(open, mover.Claimed{Holder: "one"})
	want := newViews(usageLimits{})
	want.keptBytes, want.sweepEvery = 0, 1
	want.setLog(log, "one")
	if _, err := log.Replay(t.Context(), 0, want.Apply); err != nil {
		t.Fatal(err)
	}
	if ids := want.Moves.IDs(); !slices.Equal(ids, []string{open}) {
		t.Errorf("moves = %v", ids)
	}
	if ids := want.Pauses.IDs(); !slices.Equal(ids, []string{open}) {
		t.Errorf("pauses = %v", ids)
	}
	for id, wanted := range map[string]bool{over: true, open: false, "fleet/never": false} {
		m, ended, err := want.Moves.Recall(t.Context(), id)
		if err != nil || ended != wanted || ended && (m.FinishedAt == nil || m.MoveID != id || m.LogSequence == 0) {
			t.Errorf("move %s: ended %v, error %v: %+v", id, ended, err, m)
		}
		p, ended, err := want.Pauses.Recall(t.Context(), id)
		if err != nil || ended != wanted || ended && (p.FinishedAt == nil || p.PauseID != id) {
			t.Errorf("pause %s: ended %v, error %v: %+v", id, ended, err, p)
		}
		if _, ended, err := want.Runs.Recall(t.Context(), id); ended || err != nil {
			t.Errorf("run %s: ended %v, error %v", id, ended, err)
		}
	}
}

// countUnfinished counts the machines with an unfinished remediation.
func countUnfinished(v *views) (n int) {
	for _, b := range v.Remediations.Ongoing() {
		n += len(b.Machines)
	}
	return n
}

func ended(v *views, kind eventlog.Kind, id string) bool {
	switch kind {
	case eventlog.KindMove:
		s, _ := v.Moves.Status(id)
		return s.FinishedAt != nil
	case eventlog.KindRun:
		s, _ := v.Runs.Status(id)
		return s.FinishedAt != nil && s.Phase != "Aborted"
	case eventlog.KindPause:
		s, _ := v.Pauses.Status(id)
		return s.FinishedAt != nil
	default:
		return false
	}
}
