package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// TestFrozenStore: a write that fails freezes the embedded server until it is started again. The log reports this with
// the cause, and can be opened again once the disk accepts writes. A limit on the size of a file simulates a full disk.
func TestFrozenStore(t *testing.T) {
	dir, a := t.TempDir(), moveOf("a")
	l := openTest(t, EmbeddedOptions{Dir: dir})
	if err := l.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(r syscall.Rlimit) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &r); err != nil {
			t.Fatal(err)
		}
	}
	defer limit(before)
	limit(syscall.Rlimit{Cur: 1 << 20, Max: before.Max})
	large := func(n, last uint64) Commit {
		c := commit(a, fmt.Sprint(n), last, 1)
		c.Events[0].Data = fmt.Appendf(nil, "%q", strings.Repeat("a", 100<<10))
		return c
	}
	var last uint64
	var err error
	for err == nil {
		var r Receipt
		if r, err = l.Append(t.Context(), large(last, last)); err == nil {
			last = r.Seq
		}
	}
	wantErr(t, err, ErrFrozen, "write error", dir, "open the log again")
	if err := l.Thawed(); err == nil {
		t.Error("the disk is full, and said to take writes")
	}
	limit(before)
	if err := l.Health(t.Context()); !errors.Is(err, ErrFrozen) {
		t.Errorf("a store with a disk that has space again is frozen still, but Health is %v", err)
	}
	if err := l.Thawed(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	l = openTest(t, EmbeddedOptions{Dir: dir})
	if err := l.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := l.Append(t.Context(), large(last, last)); err != nil || r.Seq != last+1 {
		t.Errorf("after the log was opened again: %+v, %v; acknowledged were %d", r, err, last)
	}
}

// TestReserve: a log that is nearly full begins nothing new, and takes what belongs to what has begun.
func TestReserve(t *testing.T) {
	const limit = 256 << 10
	l := openTest(t, EmbeddedOptions{MaxBytes: limit})
	first := commit(moveOf("begun"), "first", 0, 1)
	begun := mustAppend(t, l, first)
	var err error
	n := 0
	for ; err == nil; n++ {
		_, err = l.Append(t.Context(), commit(moveOf(fmt.Sprint(n)), "first", 0, 10))
	}
	wantErr(t, err, ErrFull, "anything new", "raise its limit")
	stats, err := l.Stats(t.Context())
	if err != nil || stats.AcceptsNew() || limit-stats.Bytes < limit/reserved/2 {
		t.Errorf("%+v: accepts new %t; %v", stats, stats.AcceptsNew(), err)
	}
	if r, err := l.Append(t.Context(), first); err != nil || !r.AlreadyStored {
		t.Errorf("what was stored before: %+v, %v", r, err)
	}
	mustAppend(t, l, commit(moveOf("begun"), "second", begun, 1))
	mustAppend(t, l, commit(Aggregate{Kind: KindDaemon, ID: "log"}, "first", 0, 1))
}

// TestSmallPayloadIsRefused: a server that would refuse scute's larger commits is refused at once.
func TestSmallPayloadIsRefused(t *testing.T) {
	srv := serverTest(t, &server.Options{MaxPayload: 256 << 10})
	_, err := Connect(t.Context(), ExternalOptions{URL: srv.ClientURL(), Create: true})
	wantErr(t, err, ErrConfig, "max_payload", "must be 1048576 or more")
}

// TestConfigurationIsCheckedAgain: a stream that is altered while the log is open is noticed.
func TestConfigurationIsCheckedAgain(t *testing.T) {
	srv := serverTest(t, &server.Options{})
	l := connectTest(t, ExternalOptions{URL: srv.ClientURL(), Create: true})
	if err := l.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := l.Warnings(); len(w) != 1 {
		t.Errorf("the warnings of one server are %q", w)
	}
	config := l.stream.CachedInfo().Config
	config.MaxAge = time.Hour
	if _, err := l.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	wantErr(t, l.Health(t.Context()), ErrConfig, "MaxAge is 1h0m0s")
}

// TestLateHead: a leader that does not know the end of the log yet is asked again; one that never does has lost commits.
func TestLateHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ask := func(context.Context) (jetstream.StreamState, error) {
			if time.Since(start) < 3*time.Second {
				return jetstream.StreamState{LastSeq: 6}, nil
			}
			return jetstream.StreamState{LastSeq: 7}, nil
		}
		if state, err := reaches(t.Context(), ask, 7, headPatience); err != nil || state.LastSeq != 7 {
			t.Errorf("%+v, %v", state, err)
		}
		_, err := reaches(t.Context(), ask, 8, headPatience)
		wantErr(t, err, ErrGap, "ends at 7, but 8")
		if took := time.Since(start); took < headPatience {
			t.Errorf("given up after %s", took)
		}
	})
}
