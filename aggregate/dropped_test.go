package aggregate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// dropping is a log of which the commits on an aggregate were dropped up to one.
type dropping struct {
	*eventlog.Log
	last uint64
}

func (d dropping) Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error) {
	if after < d.last {
		return nil, &eventlog.DroppedError{Aggregate: a, Last: d.last}
	}
	return d.Log.Read(ctx, a, after)
}

// TestDropped: an object that had ended stays ended, and one of which nothing counts any more begins from nothing after what was dropped.
func TestDropped(t *testing.T) {
	ctx, log := t.Context(), logtest.Open(t)
	before := newRoot(log)
	if err := before.Append(ctx, added{Text: "dropped"}); err != nil {
		t.Fatal(err)
	}
	cut := dropping{log, before.Seq}
	if err := newRoot(cut).Read(ctx); !errors.Is(err, eventlog.ErrDropped) {
		t.Errorf("reading one that had ended: %v", err)
	}
	again := newRoot(cut)
	again.Forgets, again.Links = true, linked
	if err := again.Read(ctx); err != nil || again.Seq != before.Seq || len(again.State.texts) > 0 {
		t.Fatalf("%v: at %d with %q", err, again.Seq, again.State.texts)
	}
	if err := again.Append(ctx, added{Text: "new"}); err != nil {
		t.Fatal(err)
	}
	fromView := newRoot(cut)
	fromView.Links, fromView.Seq, fromView.State = linked, again.Seq, again.State
	if err := fromView.Append(ctx, added{Text: "more"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new", "more"}, fromView.State.texts); diff != "" {
		t.Error(diff)
	}
}
