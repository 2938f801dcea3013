package eventlog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// TestCloseFullEpoch: an epoch that has reached its limit can be closed, and the next one has that limit for itself.
func TestCloseFullEpoch(t *testing.T) {
	const limit = 64 << 10
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, MaxBytes: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	last := uint64(0)
	for n := 0; err == nil; n++ {
		var r eventlog.Receipt
		if r, err = l.Append(t.Context(), commit(moveOf("a"), fmt.Sprint(n), last, 1)); err == nil {
			last = r.Seq
		}
	}
	wantErr(t, err, eventlog.ErrFull)
	l.OnClosing(func(step string) {
		// What begins at this moment waits, and is not refused.
		if s, err := l.Stats(t.Context()); err != nil || s.MaxBytes != limit || !s.AcceptsNew() {
			t.Errorf("%s: %+v, %v", step, s, err)
		}
	})
	closeEpoch(t, l)
	mustAppend(t, l, commit(moveOf("a"), "after", last, 1))
	if s, err := l.Stats(t.Context()); err != nil || s.MaxBytes != limit || !s.AcceptsNew() {
		t.Errorf("%+v, %v", s, err)
	}
	if n := len(replayed(t, l, 0)); uint64(n) != last+3 {
		t.Errorf("%d commits", n)
	}
}

// TestLimitOfLaterEpoch: the limit that a log is opened with is that of its open epoch, whichever it is.
func TestLimitOfLaterEpoch(t *testing.T) {
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	closeEpoch(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, embedded.Options{Dir: dir, MaxBytes: 2 << 20})
	if s, err := l.Stats(t.Context()); err != nil || s.MaxBytes != 2<<20 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Open(t.Context(), embedded.Options{Dir: dir, MaxBytes: 100})
	wantErr(t, err, eventlog.ErrConfig, "choose a larger one")
}

// TestCloseWithoutAnotherStream: where the account may have no more streams, nothing is begun.
func TestCloseWithoutAnotherStream(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	limit := func(streams int) {
		t.Helper()
		limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: streams, MaxConsumers: -1}
		if err := srv.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	l := connectTest(t, eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true})
	last := mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	wantErr(t, l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}), eventlog.ErrUnavailable, "nothing was changed", "max_streams")
	last = mustAppend(t, l, commit(moveOf("a"), "2", last, 1))
	limit(2)
	closeEpoch(t, l)
	mustAppend(t, l, commit(moveOf("a"), "3", last, 1))
}

// TestCloseWhereStreamsAreLimited: an epoch whose limit is the largest that the account allows is closed if it has space for its last commit.
func TestCloseWhereStreamsAreLimited(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1, StoreMaxStreamBytes: 4 << 20}
	if err := srv.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}); err != nil {
		t.Fatal(err)
	}
	l := connectTest(t, eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true, MaxBytes: 4 << 20})
	last := mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	closeEpoch(t, l)
	last = mustAppend(t, l, commit(moveOf("a"), "2", last, 1))
	large := commit(moveOf("a"), "large", last, 1)
	for n := range 4 {
		large.ID, large.Expected = fmt.Sprint("large ", n), last
		large.Events[0].Data = fmt.Appendf(nil, `{"text":"%s"}`, strings.Repeat("x", 900<<10))
		last = mustAppend(t, l, large)
	}
	wantErr(t, l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}), eventlog.ErrUnavailable, "nothing was changed")
	mustAppend(t, l, commit(moveOf("a"), "after", last, 1))
}

// TestCloseWithoutRoom: where the server has no room for another epoch, nothing is begun, and the log continues as it was.
func TestCloseWithoutRoom(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: 4<<20 + 512<<10, MaxStreams: -1, MaxConsumers: -1}
	if err := srv.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}); err != nil {
		t.Fatal(err)
	}
	l := connectTest(t, eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true, MaxBytes: 4 << 20})
	if err := l.CloseEpoch(t.Context(), eventlog.Closing{}); !errors.Is(err, eventlog.ErrEmptyEpoch) {
		t.Error(err)
	}
	last := mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	wantErr(t, l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}), eventlog.ErrUnavailable, "nothing was changed", "max_file")
	last = mustAppend(t, l, commit(moveOf("a"), "2", last, 1))
	if err := l.Health(t.Context()); err != nil {
		t.Error(err)
	}
	limits.MaxStore = 16 << 20
	if err := srv.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}); err != nil {
		t.Fatal(err)
	}
	closeEpoch(t, l)
	mustAppend(t, l, commit(moveOf("a"), "3", last, 1))
	if s, err := l.Stats(t.Context()); err != nil || s.MaxBytes != 4<<20 {
		t.Errorf("%+v, %v", s, err)
	}
}
