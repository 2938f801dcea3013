package consume_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/eventlog"
	"scute.dev/export/consume"
)

// records is a log of fixed commits.
type records struct {
	id  string
	all []eventlog.Record
}

var errEnd = errors.New("the end of the log")

var at = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func (l records) ID() string { return l.id }

func (l records) Follow(_ context.Context, after uint64, fn func(eventlog.Record) error) error {
	for _, r := range l.all {
		if r.Seq <= after {
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return errEnd
}

// twoEvents returns a commit of two events, and poison a message that is not an event.
func twoEvents(seq uint64) eventlog.Record {
	return eventlog.NewRecord(seq, at, "scute.log.move.a", map[string][]string{"Content-Type": {"application/cloudevents-batch+json"}}, []byte(`[
		{"specversion":"1.0","id":"c/0","type":"dev.scute.move.one.v1","time":"2026-11-22T10:00:00Z","data":{}},
		{"specversion":"1.0","id":"c/1","type":"dev.scute.move.two.v1","time":"2026-11-22T10:00:00Z","data":{}}]`))
}

func malformedRecord(seq uint64) eventlog.Record {
	return eventlog.NewRecord(seq, at, "scute.log.move.a", nil, []byte("by hand"))
}

// memory is a Store in memory that counts its writes.
type memory struct {
	at    consume.Position
	saves int
}

func (m *memory) Load(context.Context) (consume.Position, error) { return m.at, nil }

func (m *memory) Save(_ context.Context, p consume.Position) error {
	m.at, m.saves = p, m.saves+1
	return nil
}

// TestConsumer checks that events are passed on in order with their positions, that messages that are not events are
// skipped and logged, and that a commit is repeated from its first event if its second event failed.
func TestConsumer(t *testing.T) {
	var said strings.Builder
	var got []string
	refuse := true
	refused := errors.New("refused")
	store := &memory{}
	c := &consume.Consumer{
		Log: records{"this", []eventlog.Record{twoEvents(1), malformedRecord(2), twoEvents(3), twoEvents(4)}}, Store: store,
		Deliver: func(_ context.Context, e eventlog.CloudEvent) error {
			if refuse && e.Sequence == "3" && e.ID == "c/1" {
				return refused
			}
			got = append(got, e.LogID+" "+e.Sequence+" "+e.ID)
			return nil
		},
		Logger: slog.New(slog.NewTextHandler(&said, nil)),
	}
	err := c.Run(t.Context())
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), "event c/1 of scute.dev/move/a, commit 3") {
		t.Errorf("Run = %v, want the error with the event and the commit", err)
	}
	if store.at.LogID != "this" || store.at.Sequence != 2 || store.saves != 1 {
		t.Errorf("%d saves, position %+v, want 1 save at sequence 2 of log this", store.saves, store.at)
	}
	if !strings.Contains(said.String(), "not an event of scute") || !strings.Contains(said.String(), "sequence=2") {
		t.Errorf("log output does not report the skipped message: %s", &said)
	}
	refuse = false
	if err := c.Run(t.Context()); !errors.Is(err, errEnd) {
		t.Error(err)
	}
	want := []string{"this 1 c/0", "this 1 c/1", "this 3 c/0", "this 3 c/0", "this 3 c/1", "this 4 c/0", "this 4 c/1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAnotherLogIsReadFromItsBeginning checks that a position is only used with its own log.
func TestAnotherLogIsReadFromItsBeginning(t *testing.T) {
	var said strings.Builder
	taken := 0
	c := &consume.Consumer{
		Log: records{"new", []eventlog.Record{twoEvents(1)}}, Store: &memory{at: consume.Position{LogID: "old", Sequence: 7}},
		Deliver: func(context.Context, eventlog.CloudEvent) error { taken++; return nil },
		Logger:  slog.New(slog.NewTextHandler(&said, nil)),
	}
	if err := c.Run(t.Context()); !errors.Is(err, errEnd) || taken != 2 {
		t.Errorf("got %d events, error %v, want 2", taken, err)
	}
	if !strings.Contains(said.String(), "another event log") {
		t.Errorf("log output = %q, want a report of the other log", &said)
	}
}

// TestLogThatWentBack checks that a consumer stops if the log lost commits and continued; an operator decides where to
// resume.
func TestLogThatWentBack(t *testing.T) {
	store, taken := &memory{}, 0
	run := func(all ...eventlog.Record) error {
		c := &consume.Consumer{Log: records{"this", all}, Store: store, Deliver: func(context.Context, eventlog.CloudEvent) error { taken++; return nil }}
		return c.Run(t.Context())
	}
	if err := run(twoEvents(1), twoEvents(2), twoEvents(3)); !errors.Is(err, errEnd) || taken != 6 {
		t.Fatalf("got %d events, error %v, want 6", taken, err)
	}
	if err := run(twoEvents(1), twoEvents(2), malformedRecord(3), twoEvents(4)); !errors.Is(err, consume.ErrRolledBack) || taken != 6 {
		t.Errorf("got %d events, error %v, want 6 and ErrWentBack", taken, err)
	}
	store.at.Sequence = 1 // as an operator moves it
	if err := run(twoEvents(1), twoEvents(2), malformedRecord(3), twoEvents(4)); !errors.Is(err, errEnd) || taken != 10 {
		t.Errorf("got %d events, error %v, want 10", taken, err)
	}
	store.at = consume.Position{Sequence: 3}
	if err := run(twoEvents(1)); err == nil || !strings.Contains(err.Error(), "no log ID: add the ID of the log, which is this") || taken != 10 {
		t.Errorf("got %d events, error %v, want 10 and an error about the log ID", taken, err)
	}
}

func TestFile(t *testing.T) {
	f := consume.File(t.TempDir() + "/position")
	if p, err := f.Load(t.Context()); err != nil || p != (consume.Position{}) {
		t.Errorf("Load without a file = %+v, error %v", p, err)
	}
	want := consume.Position{LogID: "a", Sequence: 1 << 60}
	if err := f.Save(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if p, err := f.Load(t.Context()); err != nil || p != want {
		t.Errorf("Load = %+v, error %v", p, err)
	}
}
