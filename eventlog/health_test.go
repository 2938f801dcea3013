package eventlog_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// TestFrozenStore checks that Health reports a store that a failed write froze, with the cause, and that the log can be
// opened again once the disk accepts writes. A limit on the file size simulates a full disk.
func TestFrozenStore(t *testing.T) {
	if file := flag.Lookup("test.testlogfile"); file != nil && file.Value.String() != "" {
		// go test writes the files that tests open to a list, which would reach the limit. A separate process has no
		// such list.
		out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$").CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
			t.Errorf("child process: %v\n%s", err, out)
		}
		return
	}
	dir, a := t.TempDir(), moveOf("a")
	l := openTest(t, embedded.Options{Dir: dir})
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
	large := func(n, last uint64) eventlog.Commit {
		c := commit(a, fmt.Sprint(n), last, 1)
		c.Events[0].Data = fmt.Appendf(nil, "%q", strings.Repeat("a", 100<<10))
		return c
	}
	var last uint64
	var err error
	for err == nil {
		var r eventlog.Receipt
		if r, err = l.Append(t.Context(), large(last, last)); err == nil {
			last = r.Seq
		}
	}
	wantErr(t, err, eventlog.ErrFrozen, "write error", dir, "open the log again")
	if err := l.CheckWritable(); err == nil {
		t.Error("Thawed = nil while the disk is full")
	}
	limit(before)
	if err := l.Health(t.Context()); !errors.Is(err, eventlog.ErrFrozen) {
		t.Errorf("Health = %v after the disk has space again, want ErrFrozen until the log is opened again", err)
	}
	if err := l.CheckWritable(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	l = openTest(t, embedded.Options{Dir: dir})
	if err := l.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := l.Append(t.Context(), large(last, last)); err != nil || r.Seq != last+1 {
		t.Errorf("Append after reopening = %+v, error %v, want the commit after %d", r, err, last)
	}
}

// TestReserve checks that a nearly full log rejects new aggregates, and accepts commits of existing ones.
func TestReserve(t *testing.T) {
	const limit = 256 << 10
	l := openTest(t, embedded.Options{MaxBytes: limit})
	first := commit(moveOf("begun"), "first", 0, 1)
	begun := mustAppend(t, l, first)
	var err error
	n := 0
	for ; err == nil; n++ {
		_, err = l.Append(t.Context(), commit(moveOf(fmt.Sprint(n)), "first", 0, 10))
	}
	wantErr(t, err, eventlog.ErrFull, "new work", "raise its limit")
	stats, err := l.Stats(t.Context())
	if err != nil || stats.AcceptsNew() || limit-stats.Bytes < limit/eventlog.ReservedShare/2 {
		t.Errorf("Stats = %+v, AcceptsNew %t, error %v", stats, stats.AcceptsNew(), err)
	}
	if r, err := l.Append(t.Context(), first); err != nil || !r.AlreadyStored {
		t.Errorf("append of a stored commit = %+v, error %v, want AlreadyStored", r, err)
	}
	mustAppend(t, l, commit(moveOf("begun"), "second", begun, 1))
	mustAppend(t, l, commit(eventlog.Aggregate{Kind: eventlog.KindDaemon, ID: "log"}, "first", 0, 1))
}

// TestSmallPayloadIsRefused checks that Connect fails if the server's message limit is too small for scute's larger
// commits.
func TestSmallPayloadIsRefused(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{MaxPayload: 256 << 10})
	_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true})
	wantErr(t, err, eventlog.ErrConfig, "max_payload", "must be 1048576 or more")
}

// TestConfigurationIsCheckedAgain checks that Health reports a stream whose configuration changed while the log is
// open.
func TestConfigurationIsCheckedAgain(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	l := connectTest(t, eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true})
	if err := l.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := l.Warnings(); len(w) != 1 {
		t.Errorf("Warnings = %q, want one for a single server", w)
	}
	config := l.Stream().CachedInfo().Config
	config.MaxAge = time.Hour
	if _, err := l.JetStream().UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	wantErr(t, l.Health(t.Context()), eventlog.ErrConfig, "MaxAge is 1h0m0s")
}
