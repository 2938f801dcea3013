package aggregate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// event is an event of a counter.
type (
	event   interface{ event() }
	added   struct{ Text text }
	claimed struct{ By string }
)

func (added) event()   {}
func (claimed) event() {}

type text string

// MarshalText drops a trailing space, so that the stored text differs from the one in memory.
func (t text) MarshalText() ([]byte, error) { return []byte(strings.TrimSuffix(string(t), " ")), nil }

type counter struct {
	holder string
	texts  []string
	folded int
}

func (c *counter) Apply(e event, _ time.Time) {
	switch e := e.(type) {
	case added:
		c.texts = append(c.texts, string(e.Text))
	case claimed:
		c.holder = e.By
	}
}

func (c *counter) ClaimedBy() string { return c.holder }
func (c *counter) Folded()           { c.folded++ }

const kind = eventlog.KindRun

func catalog() *eventlog.Catalog[event] {
	return eventlog.NewCatalog(kind, eventlog.Define[event, added]("added", 1), eventlog.Define[event, claimed]("claimed", 1))
}

func newRoot(log aggregate.Log) *aggregate.Root[event, *counter] {
	return &aggregate.Root[event, *counter]{
		Log: log, Catalog: catalog(), Name: eventlog.Aggregate{Kind: kind, ID: "fleet/one"}, Actor: "test", State: new(counter),
	}
}

// newView returns an empty view of counters, all of which have ended. Their status is the number of
// their texts. Counters with the text b are not open.
func newView() *aggregate.View[event, *counter, int] {
	return aggregate.NewView(aggregate.Kind[event, *counter, int]{
		Name: kind, Catalog: catalog(), New: func() *counter { return new(counter) }, Ended: func(*counter) bool { return true },
		Open: func(_ string, e *aggregate.Entry[*counter]) bool {
			return len(e.State.texts) > 0 && e.State.texts[0] != "b"
		},
		Status: func(_ string, e *aggregate.Entry[*counter]) (int, bool) { return len(e.State.texts), true },
	})
}

// TestRoot checks that an append applies the events as they were stored, and that of two concurrent appends one fails.
func TestRoot(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	mine, other := newRoot(log), newRoot(log)
	if err := mine.Append(ctx, claimed{By: "mine"}, added{Text: "a "}); err != nil {
		t.Fatal(err)
	}
	if err := other.Append(ctx, added{Text: "lost"}); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("Append behind the last commit = %v, want ErrConflict", err)
	}
	if len(other.State.texts) > 0 {
		t.Errorf("state after a failed append has texts %q, want none", other.State.texts)
	}
	if err := other.Refresh(ctx, "mine"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(mine.State.texts, other.State.texts); diff != "" || other.Seq != mine.Seq {
		t.Errorf("refreshed state differs from the writer's: %s", diff)
	}
	if err := other.Append(ctx, claimed{By: "other"}); err != nil {
		t.Fatal(err)
	}
	if err := mine.Refresh(ctx, "mine"); !errors.Is(err, aggregate.ErrClaimLost) || !strings.Contains(err.Error(), "other") {
		t.Errorf("Refresh after another process claimed the object = %v, want ErrLost with its name", err)
	}
}

// TestRecord checks that recorded events are visible at once and stored in order, or not at all.
func TestRecord(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	r := newRoot(log)
	var want []string
	for i := range 5 { // each event fills more than half of a commit
		want = append(want, fmt.Sprint(i, strings.Repeat("x", 300<<10)))
		if err := r.Record(r.Time(), added{Text: text(want[i])}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Store(ctx); err != nil {
		t.Fatal(err)
	}
	again := newRoot(log)
	if err := again.Read(ctx); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(again.State.texts, want) || again.Seq != r.Seq {
		t.Errorf("read %d texts up to commit %d, want all up to %d", len(again.State.texts), again.Seq, r.Seq)
	}
	if err := r.Record(r.Time(), added{Text: "late"}); err != nil {
		t.Fatal(err)
	}
	if err := again.Append(ctx, added{Text: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Store(ctx); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("Store after another process's commit = %v, want ErrConflict", err)
	}
	if err := r.Reload(ctx, new(counter)); err != nil || !cmp.Equal(r.State.texts, append(want, "first")) {
		t.Errorf("after Reload: %d texts, error %v", len(r.State.texts), err)
	}
}

// TestTooLarge checks that an append with one event that is too large stores none of its events.
func TestTooLarge(t *testing.T) {
	r := newRoot(logtest.Open(t))
	err := r.Append(t.Context(), added{Text: "small"}, added{Text: text(strings.Repeat("x", 1<<20))})
	if !errors.Is(err, eventlog.ErrTooLarge) || r.Seq != 0 || len(r.State.texts) > 0 {
		t.Errorf("Append left commit %d and %d texts with error %v, want none and ErrTooLarge", r.Seq, len(r.State.texts), err)
	}
}

// TestUnreadable checks that an unknown event stops its object, while other objects continue.
func TestUnreadable(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	view := newView()
	r := newRoot(log)
	if err := r.Append(ctx, added{Text: "known"}); err != nil {
		t.Fatal(err)
	}
	unknown := eventlog.Commit{Aggregate: r.Name, ID: "newer", Expected: r.Seq, Events: []eventlog.Event{{Type: "dev.scute.run.newer.v1", Time: time.Now(), Data: []byte("{}")}}}
	receipt, err := log.Append(ctx, unknown)
	if err != nil {
		t.Fatal(err)
	}
	var unreadable *aggregate.UnreadableError
	if err := r.Read(ctx); !errors.As(err, &unreadable) || !errors.Is(err, eventlog.ErrUnknownType) || unreadable.Last != receipt.Seq {
		t.Errorf("Read = %v, want an UnreadableError for the unknown event", err)
	}
	r.Seq = receipt.Seq
	if err := r.Append(ctx, added{Text: "behind it"}); err != nil {
		t.Fatal(err)
	}
	other := newRoot(log)
	other.Name.ID = "fleet/two"
	if err := other.Append(ctx, added{Text: "another"}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("all is read")
	refused := 0
	err = log.Follow(ctx, 0, func(record eventlog.Record) error {
		if err := view.Apply(record); err != nil {
			refused++
		}
		if record.Seq == other.Seq {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if refused != 2 {
		t.Errorf("Apply failed for %d commits, want the unknown one and the one behind it", refused)
	}
	view.Read(r.Name.ID, func(e *aggregate.Entry[*counter]) {
		if e == nil || !errors.Is(e.Err, eventlog.ErrUnknownType) || !cmp.Equal(e.State.texts, []string{"known"}) || e.Seq != r.Seq || e.State.folded != 1 {
			t.Errorf("entry of the unreadable object = %+v", e)
		}
	})
	view.Read(other.Name.ID, func(e *aggregate.Entry[*counter]) {
		if e == nil || e.Err != nil || !cmp.Equal(e.State.texts, []string{"another"}) {
			t.Errorf("entry of the other object = %+v", e)
		}
	})
	if diff := cmp.Diff([]string{"fleet/one", "fleet/two"}, view.IDs()); diff != "" {
		t.Error(diff)
	}
}

// TestOpenWhileObjectsAreForgotten checks that Open never passes a missing entry to its condition while objects are
// forgotten concurrently.
func TestOpenWhileObjectsAreForgotten(t *testing.T) {
	log := logtest.Open(t)
	var records []eventlog.Record
	for _, id := range []string{"c", "a", "b"} {
		r := newRoot(log)
		r.Name.ID = id
		if err := r.Append(t.Context(), added{Text: text(id)}); err != nil {
			t.Fatal(err)
		}
		read, err := log.Read(t.Context(), r.Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, read...)
	}
	view := newView()
	fill := func() {
		for _, r := range records {
			if err := view.Apply(r); err != nil {
				t.Error(err)
			}
		}
	}
	fill()
	if got := view.Open("", ""); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("Open = %v, want a and c", got)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			view.Forget(0)
			fill()
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
			view.Open("", "")
		}
	}
}
