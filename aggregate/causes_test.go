package aggregate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// linked returns the links of a text of the form "name" or "name<cause,cause".
func linked(_ *counter, e event) aggregate.Links {
	a, ok := e.(added)
	if !ok {
		return aggregate.Links{}
	}
	name, of, _ := strings.Cut(strings.TrimSpace(strings.TrimRight(string(a.Text), "x")), "<")
	l := aggregate.Links{Keys: []aggregate.Key{{Kind: name}}}
	for cause := range strings.SplitSeq(of, ",") {
		l.CauseKeys = append(l.CauseKeys, aggregate.Key{Kind: cause})
	}
	return l
}

// causeChain lists the texts in the log, each with the text of its cause.
func causeChain(t *testing.T, log aggregate.Log) []string {
	t.Helper()
	records, err := log.Read(t.Context(), eventlog.Aggregate{Kind: kind, ID: "fleet/one"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	texts := make(map[string]string)
	for _, r := range records {
		err := catalog().Each(r, func(e event, stored eventlog.Event) {
			name, _, _ := strings.Cut(strings.TrimRight(string(e.(added).Text), "x"), "<")
			texts[stored.ID] = fmt.Sprintf("%s@%d", name, r.Seq)
			out = append(out, texts[stored.ID]+" "+texts[stored.Causation])
			if stored.Causation != "" && texts[stored.Causation] == "" {
				t.Errorf("%s has the cause %s, which is not before it in the log", texts[stored.ID], stored.Causation)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func newLinked(log aggregate.Log) *aggregate.Root[event, *counter] {
	r := newRoot(log)
	r.Links = linked
	return r
}

// TestCauses checks that the cause of an event is the latest event that it may follow from: in the same commit, in an
// earlier one, or in one that another process stored. Events of a rejected commit are never causes.
func TestCauses(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	one, two := newLinked(log), newLinked(log)
	for _, err := range []error{
		one.Append(ctx, added{Text: "a"}, added{Text: "b<a"}),
		two.Read(ctx),
		two.Append(ctx, added{Text: "c<a,b"}, added{Text: "d<none"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Append(ctx, added{Text: "a"}); !errors.Is(err, eventlog.ErrConflict) {
		t.Fatalf("Append behind the last commit = %v, want ErrConflict", err)
	}
	for _, err := range []error{one.Read(ctx), one.Append(ctx, added{Text: "e<c"}, added{Text: "f<a"}, added{Text: "a"}, added{Text: "g<a"})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"a@1 ", "b@1 a@1", "c@2 b@1", "d@2 ", "e@3 c@2", "f@3 a@1", "a@3 ", "g@3 a@3"}
	if diff := cmp.Diff(want, causeChain(t, log)); diff != "" {
		t.Error(diff)
	}
}

// TestCausesOfASplitDecision checks the causes within a decision that is stored as several commits.
func TestCausesOfASplitDecision(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	r := newLinked(log)
	large := strings.Repeat("x", 300<<10)
	if err := r.Record(r.Time(), added{Text: text("a" + large)}, added{Text: text("b<a" + large)}, added{Text: "c<a"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Store(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1 ", "b@2 a@1", "c@2 a@1"}, causeChain(t, log)); diff != "" {
		t.Error(diff)
	}
}

// TestCausesThatEnd checks that a cause is forgotten once no later event can follow from it: a long-lived object has
// many such events.
func TestCausesThatEnd(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	ends := func(s *counter, e event) aggregate.Links {
		l := linked(s, e)
		if len(l.CauseKeys) > 0 && l.CauseKeys[0].Kind == "a" {
			l.Ended = l.CauseKeys
		}
		return l
	}
	r, again := newRoot(log), newRoot(log)
	r.Links, again.Links = ends, ends
	for _, err := range []error{
		r.Append(ctx, added{Text: "a"}, added{Text: "b<a"}), r.Append(ctx, added{Text: "c<a"}, added{Text: "d<b"}),
		again.Read(ctx), again.Append(ctx, added{Text: "e<a"}, added{Text: "f<b"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a@1 ", "b@1 a@1", "c@2 ", "d@2 b@1", "e@3 ", "f@3 b@1"}, causeChain(t, log)); diff != "" {
		t.Error(diff)
	}
}

// TestCausesOfAStateFromAView checks that causes are read from the log if the state comes from a view, which does not
// have them, and again after a reload.
func TestCausesOfAStateFromAView(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	first := newLinked(log)
	if err := first.Append(ctx, added{Text: "a"}); err != nil {
		t.Fatal(err)
	}
	viewed := newLinked(log)
	viewed.Seq = first.Seq
	if err := first.Append(ctx, added{Text: "b<a"}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		viewed.Read(ctx), viewed.Append(ctx, added{Text: "c<a"}), viewed.Append(ctx, added{Text: "d<b"}),
		viewed.Reload(ctx, new(counter)), viewed.Append(ctx, added{Text: "e<d"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a@1 ", "b@2 a@1", "c@3 a@1", "d@4 b@2", "e@5 d@4"}, causeChain(t, log)); diff != "" {
		t.Error(diff)
	}
}

// TestCausesBehindAnUnreadableEvent checks that an event has no cause if an unreadable event may be a later one, and
// that the append succeeds.
func TestCausesBehindAnUnreadableEvent(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	first := newLinked(log)
	if err := first.Append(ctx, added{Text: "a"}); err != nil {
		t.Fatal(err)
	}
	newer := eventlog.Commit{Aggregate: first.Name, ID: "newer", Expected: first.Seq, Events: []eventlog.Event{{Type: "dev.scute.run.newer.v1", Time: time.Now(), Data: []byte("{}")}}}
	receipt, err := log.Append(ctx, newer)
	if err != nil {
		t.Fatal(err)
	}
	behind := newLinked(log)
	behind.Seq = receipt.Seq
	if err := behind.Append(ctx, added{Text: "b<a"}); err != nil {
		t.Fatal(err)
	}
	records, err := log.Read(ctx, first.Name, receipt.Seq)
	if err != nil || len(records) != 1 {
		t.Fatalf("read %d records with error %v, want 1", len(records), err)
	}
	if events, err := records[0].Events(); err != nil || events[0].Causation != "" {
		t.Errorf("events = %+v, error %v, want no cause", events, err)
	}
}
