package aggregate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counts is a view of the number of events of each aggregate. It cannot apply events of version 2.
type counts map[string]int

func (c counts) Apply(r eventlog.Record) error {
	for _, t := range r.Types() {
		if !strings.HasSuffix(t, ".v1") {
			return fmt.Errorf("%w: %s", eventlog.ErrUnknownType, t)
		}
	}
	c[r.Aggregate.ID] += len(r.Types())
	return nil
}

// add appends one event of a version to an aggregate, and returns the commit's sequence.
func add(t *testing.T, l *eventlog.Log, id string, version int) uint64 {
	t.Helper()
	a := eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}
	records, err := l.Read(t.Context(), a, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := eventlog.Commit{Aggregate: a, ID: fmt.Sprint(len(records))}
	if n := len(records); n > 0 {
		c.Expected = records[n-1].Seq
	}
	c.Events = []eventlog.Event{{Type: fmt.Sprintf("dev.scute.move.counted.v%d", version), Time: time.Unix(1, 0), Data: json.RawMessage("{}")}}
	r, err := l.Append(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r.Seq
}

// start runs a projector until stop is called.
func start(t *testing.T, p *aggregate.Projector) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want context.Canceled", err)
		}
	}
	select {
	case <-p.CaughtUp():
	case err := <-done:
		t.Fatal(err)
	}
	return stop
}

func TestFollowsAndWaits(t *testing.T) {
	l := logtest.Open(t)
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	view := counts{}
	p := aggregate.NewProjector(l, "counts", view, slog.New(slog.DiscardHandler))
	stop := start(t, p)
	for range 20 {
		seq := add(t, l, "a", 1)
		if err := p.WaitFor(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		if got := p.Position(); got != seq {
			t.Fatalf("Position = %d, want %d", got, seq)
		}
	}
	if diff := cmp.Diff(counts{"a": 21, "b": 1}, view); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.WaitFor(ctx, 99); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it is at 22") {
		t.Errorf("WaitFor a future sequence = %v, want DeadlineExceeded with the position", err)
	}
	stop()
	if err := p.WaitFor(t.Context(), 99); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitFor after the end = %v, want context.Canceled", err)
	}
}

// TestUnknownStopsOnlyItsAggregate checks that the view continues with other aggregates after an event of an unknown
// version.
func TestUnknownStopsOnlyItsAggregate(t *testing.T) {
	l := logtest.Open(t)
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	add(t, l, "a", 2)
	add(t, l, "a", 1)
	add(t, l, "b", 1)
	var lines bytes.Buffer
	view := counts{}
	p := aggregate.NewProjector(l, "counts", view, slog.New(slog.NewTextHandler(&lines, nil)))
	stop := start(t, p)
	if diff := cmp.Diff(counts{"a": 1, "b": 2}, view); diff != "" || p.Position() != 5 {
		t.Errorf("view at sequence %d (-want +got):\n%s", p.Position(), diff)
	}
	if !strings.Contains(lines.String(), "aggregate=move/a sequence=3") || strings.Count(lines.String(), "set aside") != 1 {
		t.Errorf("log output = %q, want one report of the aggregate", lines.String())
	}
	stop()
}
