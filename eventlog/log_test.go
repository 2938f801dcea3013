package eventlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

var decided = time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)

func openTest(t *testing.T, o embedded.Options) *eventlog.Log {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	l, err := embedded.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func moveOf(id string) eventlog.Aggregate { return eventlog.Aggregate{Kind: eventlog.KindMove, ID: id} }

// commit returns a commit of n events on an aggregate.
func commit(a eventlog.Aggregate, id string, expected uint64, n int) eventlog.Commit {
	c := eventlog.Commit{Aggregate: a, ID: id, Expected: expected}
	for i := range n {
		c.Events = append(c.Events, eventlog.Event{
			Type: fmt.Sprintf("dev.scute.%s.tested.v1", a.Kind), Time: decided, Actor: "user/test",
			Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)),
		})
	}
	return c
}

func mustAppend(t *testing.T, l *eventlog.Log, c eventlog.Commit) uint64 {
	t.Helper()
	r, err := l.Append(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r.Seq
}

func TestAppendReadFollow(t *testing.T) {
	l := openTest(t, embedded.Options{})
	a, b := moveOf("fleet/prod"), moveOf("fleet/dev")

	one := commit(a, "start", 0, 1)
	one.Events[0].Causation, one.Events[0].Correlation = "request 7 \"é\" 100%", "c"
	if r, err := l.Append(t.Context(), one); err != nil || r != (eventlog.Receipt{Seq: 1}) {
		t.Fatalf("first append = %+v, error %v", r, err)
	}
	if r, err := l.Append(t.Context(), one); err != nil || r != (eventlog.Receipt{Seq: 1, AlreadyStored: true}) {
		t.Fatalf("same append again = %+v, error %v, want AlreadyStored", r, err)
	}
	if _, err := l.Append(t.Context(), commit(a, "other", 0, 1)); !errors.Is(err, eventlog.ErrConflict) {
		t.Fatalf("append behind the last commit = %v, want ErrConflict", err)
	}
	if _, err := l.Append(t.Context(), commit(a, "other", 7, 1)); !errors.Is(err, eventlog.ErrConflict) {
		t.Fatalf("append with a future sequence = %v, want ErrConflict", err)
	}
	// A commit ID may be reused on another aggregate.
	if r, err := l.Append(t.Context(), commit(b, "start", 0, 1)); err != nil || r != (eventlog.Receipt{Seq: 2}) {
		t.Fatalf("append to another aggregate = %+v, error %v", r, err)
	}
	mustAppend(t, l, commit(a, "several", 1, 3))

	records, err := l.Read(t.Context(), a, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprintf("%d %s %s %s", r.Seq, r.Aggregate, r.CommitID, strings.Join(r.Types(), " ")))
	}
	want := []string{
		"1 move/fleet/prod start dev.scute.move.tested.v1",
		"3 move/fleet/prod several dev.scute.move.tested.v1 dev.scute.move.tested.v1 dev.scute.move.tested.v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	events, err := records[0].Events()
	one.Events[0].ID = "start/0"
	if diff := cmp.Diff(one.Events, events); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if records, err = l.Read(t.Context(), a, 3); len(records) != 0 || err != nil {
		t.Errorf("Read after the last commit = %v, error %v, want none", records, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	seqs, done := make(chan uint64), make(chan error)
	go func() {
		done <- l.Follow(ctx, 0, func(r eventlog.Record) error { seqs <- r.Seq; return nil })
	}()
	for want := uint64(1); want <= 3; want++ {
		if got := <-seqs; got != want {
			t.Errorf("followed %d, want %d", got, want)
		}
	}
	mustAppend(t, l, commit(b, "more", 2, 1))
	if got := <-seqs; got != 4 {
		t.Errorf("followed %d, want 4", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Follow = %v, want context.Canceled", err)
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, embedded.Options{Dir: dir})
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, embedded.Options{Dir: dir})
	var got []string
	head, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error { got = append(got, r.CommitID); return nil })
	if diff := cmp.Diff([]string{"1"}, got); diff != "" || head != 1 || err != nil {
		t.Error(head, err, diff)
	}
}

func TestListenAddressIsTaken(t *testing.T) {
	first := openTest(t, embedded.Options{Listen: "127.0.0.1:0"})
	dir := t.TempDir()
	_, err := embedded.Open(withTimeout(t, time.Minute), embedded.Options{Dir: dir, Listen: strings.TrimPrefix(first.URL(), "nats://")})
	wantErr(t, err, eventlog.ErrUnavailable, "address already in use", dir)
	_, err = embedded.Open(t.Context(), embedded.Options{Dir: dir, Listen: "nowhere"})
	if err == nil || !strings.Contains(err.Error(), `listen address "nowhere"`) {
		t.Error(err)
	}
	openTest(t, embedded.Options{Dir: dir}) // neither attempt left a lock behind
}

func TestCloseEndsFollowers(t *testing.T) {
	l := openTest(t, embedded.Options{})
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	arrived, done := make(chan struct{}), make(chan error)
	go func() {
		done <- l.Follow(withTimeout(t, time.Minute), 0, func(eventlog.Record) error { close(arrived); return nil })
	}()
	<-arrived
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantErr(t, <-done, eventlog.ErrUnavailable)
	_, err := l.Append(t.Context(), commit(moveOf("a"), "2", 1, 1))
	wantErr(t, err, eventlog.ErrUnavailable)
}

func TestFollowerErrorEndsIt(t *testing.T) {
	l := openTest(t, embedded.Options{})
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	enough := errors.New("enough")
	if err := l.Follow(withTimeout(t, time.Minute), 0, func(eventlog.Record) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	if at, err := l.Replay(t.Context(), 0, func(eventlog.Record) error { return enough }); !errors.Is(err, enough) || at != 0 {
		t.Error(at, err)
	}
}
