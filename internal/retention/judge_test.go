package retention_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/drop"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/projection"
	"scute.dev/internal/retention"
	"scute.dev/internal/usage"
	"scute.dev/mover"
	"scute.dev/pause/request"
	"scute.dev/projector"
)

// TestWhatStays: of closed epochs that are dropped, the commits of what has not ended stay, of what cannot be read, and of what the log says of itself;
// a view that begins anywhere is what one is that has followed all along.
func TestWhatStays(t *testing.T) {
	log := logtest.Open(t)
	last := make(map[eventlog.Aggregate]uint64)
	tell := func(a eventlog.Aggregate, e eventlog.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		e.Time, e.Actor = time.Now(), "user/test"
		c := eventlog.Commit{Aggregate: a, Expected: last[a], Events: []eventlog.Event{e}}
		c.ID = c.IDFor("test")
		r, err := log.Append(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		last[a] = r.Seq
	}
	moves, pauses := mover.NewCatalog(), request.NewCatalog()
	over, open, strange := eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/over"}, eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/open"},
		eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/strange"}
	paused, other := eventlog.Aggregate{Kind: eventlog.KindPause, ID: "fleet/over"}, eventlog.Aggregate{Kind: "other", ID: "fleet/x"}
	self := eventlog.Aggregate{Kind: eventlog.KindDaemon, ID: "log"}
	for _, a := range []eventlog.Aggregate{over, open, strange} {
		e, err := moves.Encode(mover.Requested{Spec: mover.Spec{Namespace: "fleet"}})
		tell(a, e, err)
	}
	e, err := pauses.Encode(request.Requested{Spec: request.Spec{Namespace: "fleet"}})
	tell(paused, e, err)
	tell(other, eventlog.Event{Type: "dev.scute.other.noted.v1", Data: []byte(`{}`)}, nil)
	e, err = moves.Encode(mover.Abandoned{Why: "a test"})
	tell(over, e, err)
	e, err = pauses.Encode(request.Released{})
	tell(paused, e, err)
	file := projection.File(t.TempDir())
	started(t, log, file) // its snapshot is in the epoch that is dropped
	tell(strange, eventlog.Event{Type: "dev.scute.move.unheard-of.v9", Data: []byte(`{}`)}, nil)
	if err := log.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test", Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	e, err = moves.Encode(mover.Claimed{Holder: "one"})
	tell(open, e, err)
	e, err = moves.Encode(mover.Requested{Spec: mover.Spec{Namespace: "fleet"}})
	tell(eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/new"}, e, err)

	view := func() *projection.View {
		v := projection.New(usage.Limits{})
		if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error { _ = v.Apply(r); return nil }); err != nil {
			t.Fatal(err)
		}
		return v
	}
	followed, err := projector.Hash(view())
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "archive")
	if _, err := backup.Write(t.Context(), log, archive, backup.Options{Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	plan, err := drop.Prepare(t.Context(), log, archive, 1, func() drop.Judge { return retention.NewJudge() }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Tombstones != 2 || plan.Objects[eventlog.KindMove] != 2 || plan.Objects["other"] != 1 {
		t.Errorf("%+v", plan)
	}
	if err := plan.Carry(t.Context(), "user/test", "a test", time.Now(), drop.Waits{}); err != nil {
		t.Fatal(err)
	}
	for a, stays := range map[eventlog.Aggregate]bool{over: false, paused: false, open: true, strange: true, other: true} {
		if _, err := log.Read(t.Context(), a, 0); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %v", a, err, stays)
		}
	}
	if !retention.NewJudge().Stays(self) {
		t.Error("what the log says of itself is dropped")
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("there was no snapshot: %v", err)
	}
	if begun, err := projector.Hash(started(t, log, file)); err != nil || begun != followed {
		t.Errorf("the view of a daemon with a snapshot from before is %s, %v; one that followed is %s", begun, err, followed)
	}
	if begun, err := projector.Hash(view()); err != nil || begun != followed {
		t.Errorf("the view from the beginning is %s, %v; one that followed is %s", begun, err, followed)
	}
}

// started is the view of a daemon that has started with a snapshot, and taken another one.
func started(t *testing.T, log *eventlog.Log, file string) *projection.View {
	t.Helper()
	v := projection.New(usage.Limits{})
	p := projector.New(log, v, projector.Options{Name: projection.Name, Program: "this", Snapshot: file, Every: 1})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	select {
	case <-p.CaughtUp():
	case err := <-ended:
		t.Fatal(err)
	}
	stop()
	<-ended
	return v
}
