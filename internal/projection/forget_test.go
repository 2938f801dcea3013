package projection

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/usage"
	"scute.dev/mover"
	"scute.dev/pause/request"
	"scute.dev/projector"
)

// TestAClosedEpochIsForgotten: of the saved histories, with epochs that are closed in between, a view has what it would have without
// forgetting, but for what had ended before the last closing; and that all the same from a snapshot taken anywhere.
func TestAClosedEpochIsForgotten(t *testing.T) {
	records := withClosings(t, 100, 220)
	got, whole := New(usage.Limits{}), New(usage.Limits{})
	fold(t, got, records)
	closed := uint64(0)
	for _, r := range records {
		if _, ok := r.OpensEpoch(); ok {
			closed = r.Seq
			continue
		}
		if err := whole.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	last := make(map[string]uint64) // commit of each aggregate
	for _, r := range records {
		last[r.Aggregate.String()] = r.Seq
	}
	have, forgotten := parts(t, got), 0
	for name, data := range parts(t, whole) {
		kind, id, _ := strings.Cut(name, "/")
		over := ended(whole, eventlog.Kind(kind), id)
		switch had, ok := have[name]; {
		case kind == usagePart: // counts from the closing on
		case ok && had != data:
			t.Errorf("%s is not what it is without forgetting", name)
		case ok && over && last[name] < closed:
			t.Errorf("%s ended before the closing, and is still there", name)
		case !ok && (!over || last[name] > closed):
			t.Errorf("%s is missing: ended %v, at commit %d; the epoch was opened at %d", name, over, last[name], closed)
		case !ok:
			forgotten++
		}
		delete(have, name)
	}
	delete(have, "remediation/epoch")
	if len(have) > 0 || forgotten < 5 {
		t.Errorf("%d are forgotten; parts that nobody wants: %v", forgotten, have)
	}
	rapid.Check(t, func(rt *rapid.T) {
		cut := rapid.IntRange(0, len(records)).Draw(rt, "cut")
		v := New(usage.Limits{})
		fold(t, v, records[:cut])
		v = restored(t, v)
		fold(t, v, records[cut:])
		same(t, got, v)
	})
}

// TestAnyClosings: wherever epochs are closed, and however many years pass before one is, a view that has followed all along, one that
// was restored from snapshots and one that replays the log are the same, and forget nothing that has not ended.
func TestAnyClosings(t *testing.T) {
	records := withClosings(t, 100)
	i := slices.IndexFunc(records, func(r eventlog.Record) bool { _, opens := r.OpensEpoch(); return opens })
	opens := records[i]
	records = slices.Delete(records, i, i+1)
	whole := New(usage.Limits{})
	fold(t, whole, records)
	all, busy := parts(t, whole), machines(whole)
	rapid.Check(t, func(rt *rapid.T) {
		at := rapid.SliceOfNDistinct(rapid.IntRange(0, len(records)), 1, 6, rapid.ID).Draw(rt, "closings")
		slices.Sort(at)
		var list []eventlog.Record
		for i := range len(records) + 1 {
			if slices.Contains(at, i) {
				later := opens.Stored.AddDate(rapid.IntRange(0, 3).Draw(rt, "years"), 0, 0)
				header := maps.Clone(opens.Header())
				header["ce-time"] = []string{later.Format(time.RFC3339Nano)}
				list = append(list, eventlog.NewRecord(uint64(len(list)+1), later, opens.Subject(), header, opens.Data()))
			}
			if i < len(records) {
				r := records[i]
				list = append(list, eventlog.NewRecord(uint64(len(list)+1), r.Stored, r.Subject(), r.Header(), r.Data()))
			}
		}
		want := New(usage.Limits{})
		fold(t, want, list)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(list)), 1, 2).Draw(rt, "cuts")
		slices.Sort(cuts)
		v, done := New(usage.Limits{}), 0
		for _, cut := range cuts {
			fold(t, v, list[done:cut])
			v, done = restored(t, v), cut
		}
		fold(t, v, list[done:])
		have := parts(t, want)
		if !maps.Equal(have, parts(t, v)) {
			same(t, want, v) // names what differs
		}
		for name := range all {
			kind, id, _ := strings.Cut(name, "/")
			_, known := have[name]
			if k := eventlog.Kind(kind); !known && k != eventlog.KindRemediation && kind != usagePart && !ended(whole, k, id) {
				t.Errorf("%s has not ended, and is forgotten", name)
			}
		}
		if got := machines(want); got != busy {
			t.Errorf("something is in progress for %d machines, and the view knows of %d", busy, got)
		}
	})
}

// TestWhatEndedLongAgoIsForgotten: without any closing a view forgets what has ended, the latest of it last, and nothing else. However
// often it is restored, it is what a view is that has followed all along.
func TestWhatEndedLongAgoIsForgotten(t *testing.T) {
	records := histories(t)
	whole := New(usage.Limits{})
	fold(t, whole, records)
	all := parts(t, whole)
	took := make(map[string]int) // by each object of the log
	for _, r := range records {
		took[r.Aggregate.String()] += len(r.Subject()) + len(r.Data())
	}
	forgotten := 0
	rapid.Check(t, func(rt *rapid.T) {
		v := New(usage.Limits{})
		v.keptBytes, v.sweepEvery = rapid.IntRange(0, 200_000).Draw(rt, "kept"), rapid.Uint64Range(1, 64).Draw(rt, "every")
		again, done := restored(t, v), 0
		fold(t, v, records)
		cuts := rapid.SliceOfN(rapid.IntRange(0, len(records)), 1, 3).Draw(rt, "cuts")
		slices.Sort(cuts)
		for _, cut := range cuts {
			fold(t, again, records[done:cut])
			again, done = restored(t, again), cut
		}
		fold(t, again, records[done:])
		same(t, v, again)

		have := parts(t, v)
		for name := range all {
			kind, id, _ := strings.Cut(name, "/")
			if _, known := have[name]; known {
				continue
			}
			if forgotten++; !ended(whole, eventlog.Kind(kind), id) {
				t.Errorf("%s has not ended, and is forgotten", name)
			}
		}
		v.forget(v.keptBytes)
		kept := make(map[string]int)
		for name := range parts(t, v) {
			if kind, id, _ := strings.Cut(name, "/"); ended(v, eventlog.Kind(kind), id) {
				kept[kind] += took[name]
			}
		}
		for kind, bytes := range kept {
			if bytes > v.keptBytes {
				t.Errorf("of what has ended of kind %s, %d bytes are kept, want at most %d", kind, bytes, v.keptBytes)
			}
		}
	})
	if forgotten == 0 {
		t.Error("nothing was forgotten")
	}
}

// machines counts those for which something was begun that is not over.
func machines(v *View) (n int) {
	for _, b := range v.Remediations.Begun() {
		n += len(b.Machines)
	}
	return n
}

func ended(v *View, kind eventlog.Kind, id string) bool {
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

// withClosings are the commits of the histories, with an epoch closed after some of them.
func withClosings(t *testing.T, after ...int) []eventlog.Record {
	t.Helper()
	log, list := logtest.Open(t), load(t)
	for n, more := 0, true; more; {
		more = false
		for _, h := range list {
			if h.append(t, log) {
				more = true
				n++
			}
			if slices.Contains(after, n) {
				closeEpoch(t, log)
				after = after[1:]
			}
		}
	}
	if len(after) > 0 {
		t.Fatalf("the histories are too short: %v", after)
	}
	return all(t, log)
}

func closeEpoch(t *testing.T, log *eventlog.Log) {
	t.Helper()
	if err := log.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test", Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, log *eventlog.Log) (records []eventlog.Record) {
	t.Helper()
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error { records = append(records, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return records
}

// TestARestartAcrossAClosing: a daemon that is started with a snapshot of before the closing, one of after it, and one without have the
// same view; what has ended is found in the log, and what is told of it afterwards changes nothing.
func TestARestartAcrossAClosing(t *testing.T) {
	log, dir := logtest.Open(t), t.TempDir()
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
	start := func(file string) *View {
		v := New(usage.Limits{})
		v.Moves.Log, v.Runs.Log, v.Pauses.Log = log, log, log
		p := projector.New(log, v, projector.Options{Name: Name, Program: "this", Snapshot: file, Every: 1})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		<-p.CaughtUp()
		stop()
		<-ended
		return v
	}

	for _, id := range []string{over, open} {
		move(id, mover.Requested{Spec: mover.Spec{Namespace: "fleet"}})
		pause(id, request.Requested{Spec: request.Spec{Namespace: "fleet"}})
	}
	move(over, mover.Abandoned{Why: "a test"})
	pause(over, request.Released{})
	before, after := File(dir+"/before"), File(dir+"/after")
	start(before)
	closeEpoch(t, log)
	start(after)
	move(over, mover.Claimed{Holder: "another"}) // nobody does
	move(open, mover.Claimed{Holder: "one"})
	want := start("")
	same(t, want, start(before))
	same(t, want, start(after))

	if ids := want.Moves.IDs(); !slices.Equal(ids, []string{open}) {
		t.Errorf("the moves are %v", ids)
	}
	if ids := want.Pauses.IDs(); !slices.Equal(ids, []string{open}) {
		t.Errorf("the pauses are %v", ids)
	}
	for id, wanted := range map[string]bool{over: true, open: false, "fleet/never": false} {
		m, ended, err := want.Moves.Recall(t.Context(), id)
		if err != nil || ended != wanted || ended && (m.FinishedAt == nil || m.MoveID != id || m.LogSequence == 0) {
			t.Errorf("the move %s: ended %v, %v: %+v", id, ended, err, m)
		}
		p, ended, err := want.Pauses.Recall(t.Context(), id)
		if err != nil || ended != wanted || ended && (p.FinishedAt == nil || p.PauseID != id) {
			t.Errorf("the pause %s: ended %v, %v: %+v", id, ended, err, p)
		}
		if _, ended, err := want.Runs.Recall(t.Context(), id); ended || err != nil {
			t.Errorf("the run %s: ended %v, %v", id, ended, err)
		}
	}
}
