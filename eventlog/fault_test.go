package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

func TestFullLogRefusesAndForgetsNothing(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, embedded.Options{Dir: dir, MaxBytes: 64 << 10})
	a := moveOf("a")
	var last uint64
	var refused eventlog.Commit
	for n := 0; ; n++ {
		refused = commit(a, fmt.Sprint(n), last, 10)
		r, err := l.Append(t.Context(), refused)
		if err != nil {
			wantErr(t, err, eventlog.ErrFull, "raise its limit")
			break
		}
		last = r.Seq
	}
	records, err := l.Read(t.Context(), a, 0)
	if err != nil || uint64(len(records)) != last || last < 10 {
		t.Fatalf("Read returned %d of %d commits, error %v", len(records), last, err)
	}
	// A full log still recognizes stored commits and conflicts.
	stored := commit(a, fmt.Sprint(last-1), last-1, 10)
	if r, err := l.Append(t.Context(), stored); err != nil || r != (eventlog.Receipt{Seq: last, AlreadyStored: true}) {
		t.Errorf("append of a stored commit = %+v, error %v, want AlreadyStored", r, err)
	}
	_, err = l.Append(t.Context(), commit(a, "late", 1, 1))
	wantErr(t, err, eventlog.ErrConflict)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	_, err = embedded.Open(t.Context(), embedded.Options{Dir: dir, MaxBytes: 1 << 10})
	wantErr(t, err, eventlog.ErrConfig, "limit 1024")
	l = openTest(t, embedded.Options{Dir: dir, MaxBytes: 1 << 20})
	if r, err := l.Append(t.Context(), refused); err != nil || r != (eventlog.Receipt{Seq: last + 1}) {
		t.Errorf("Append after the limit was raised = %+v, error %v", r, err)
	}
}

func TestCommitBeyondOneMessage(t *testing.T) {
	l := openTest(t, embedded.Options{})
	c := commit(moveOf("a"), "huge", 0, 1)
	c.Events[0].Data = []byte(strconv.Quote(string(bytes.Repeat([]byte("x"), 1<<20))))
	_, err := l.Append(t.Context(), c)
	wantErr(t, err, eventlog.ErrTooLarge, "limit is 1048576", "split it")
	if head, err := l.Head(t.Context()); head != 0 || err != nil {
		t.Errorf("Head = %d, error %v, want 0", head, err)
	}
}

func TestSecondProcessOnTheFolder(t *testing.T) {
	dir := t.TempDir()
	c, _ := serveChild(t, dir, "127.0.0.1:0")
	_, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	wantErr(t, err, eventlog.ErrLocked, fmt.Sprintf("held by process %d;", c.cmd.Process.Pid))
	c.kill()
	openTest(t, embedded.Options{Dir: dir}) // the kernel released the lock
}

// TestServerKilledAndBack checks that followers and appends continue after the server is killed and restarted.
func TestServerKilledAndBack(t *testing.T) {
	dir := t.TempDir()
	c, url := serveChild(t, dir, "127.0.0.1:0")
	l := connectTest(t, eventlog.ExternalOptions{URL: url})
	ctx, cancel := context.WithCancel(withTimeout(t, time.Minute))
	var followed []uint64
	arrived, done := make(chan uint64, 100), make(chan error)
	go func() {
		done <- l.Follow(ctx, 0, func(r eventlog.Record) error {
			followed = append(followed, r.Seq)
			arrived <- r.Seq
			return nil
		})
	}()
	last := mustAppend(t, l, commit(moveOf("a"), "before", 0, 1))
	<-arrived
	for n := range 3 {
		c.kill()
		back := make(chan *child)
		go func() {
			time.Sleep(300 * time.Millisecond)
			again, _ := serveChild(t, dir, url[len("nats://"):])
			back <- again
		}()
		last = mustAppend(t, l, commit(moveOf("a"), fmt.Sprintf("during %d", n), last, 1))
		c = <-back
		for seq := uint64(0); seq != last; {
			select {
			case seq = <-arrived:
			case <-ctx.Done():
				t.Fatalf("followed up to commit %d, want %d", seq, last)
			}
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if want := []uint64{1, 2, 3, 4}; !slices.Equal(followed, want) {
		t.Errorf("followed %v, want %v", followed, want)
	}
}

// TestServerStandsStill stops the server's process, which simulates a disk that hangs. An append fails at its deadline,
// and appending the same commit again determines whether it was stored.
func TestServerStandsStill(t *testing.T) {
	c, url := serveChild(t, t.TempDir(), "127.0.0.1:0")
	l := connectTest(t, eventlog.ExternalOptions{URL: url})
	a := moveOf("a")
	mustAppend(t, l, commit(a, "before", 0, 1))
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The signal is asynchronous: wait until the process has stopped.
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the server is not stopped: status %v, error %v", status, err)
	}
	stuck, quickest := commit(a, "stuck", 1, 1), time.Hour
	for tries := 0; tries < 10 && quickest >= eventlog.PublishTimeout; tries++ { // a busy machine exceeds the deadline sometimes, not ten times
		ctx, start := withTimeout(t, 300*time.Millisecond), time.Now()
		_, err := l.Append(ctx, stuck)
		wantErr(t, err, eventlog.ErrUnavailable, "append the same commit again")
		quickest = min(quickest, time.Since(start))
		if _, err := l.Head(ctx); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("Head of a stopped server = %v, want ErrUnavailable", err)
		}
	}
	if quickest >= eventlog.PublishTimeout {
		t.Errorf("Append returned after %s, beyond its deadline", quickest)
	}
	// Without a deadline, Append waits, retries, and finds that its first attempt was stored.
	again := make(chan error)
	go func() {
		r, err := l.Append(t.Context(), stuck)
		if err == nil && r != (eventlog.Receipt{Seq: 2, AlreadyStored: true}) {
			err = fmt.Errorf("receipt %+v", r)
		}
		again <- err
	}()
	time.Sleep(eventlog.PublishTimeout + 200*time.Millisecond)
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-again; err != nil {
		t.Error(err)
	}
	records, err := l.Read(t.Context(), a, 0)
	if err != nil || len(records) != 2 {
		t.Errorf("Read returned %d commits, error %v, want 2", len(records), err)
	}
}

func TestStreamDeletedUnderUs(t *testing.T) {
	dir := t.TempDir()
	l := openTest(t, embedded.Options{Dir: dir})
	a := moveOf("a")
	mustAppend(t, l, commit(a, "1", 0, 1))
	ctx := withTimeout(t, time.Minute)
	arrived, done := make(chan struct{}), make(chan error)
	go func() {
		done <- l.Follow(ctx, 0, func(eventlog.Record) error { arrived <- struct{}{}; return nil })
	}()
	<-arrived
	if err := l.JetStream().DeleteStream(ctx, eventlog.StreamName); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-done, eventlog.ErrMissing, "backup")
	_, err := l.Append(ctx, commit(a, "2", 1, 1))
	wantErr(t, err, eventlog.ErrMissing, eventlog.StreamName, "backup")
	_, err = l.Read(ctx, a, 0)
	wantErr(t, err, eventlog.ErrMissing)

	// A new stream with the same name is not the same log.
	if _, err := l.JetStream().CreateStream(ctx, eventlog.StreamConfig(eventlog.StreamName)); err != nil {
		t.Fatal(err)
	}
	_, err = l.Head(ctx)
	wantErr(t, err, eventlog.ErrMissing, "created at")
	wantErr(t, l.Follow(ctx, 1, func(eventlog.Record) error { return nil }), eventlog.ErrMissing)
	if err := l.JetStream().DeleteStream(ctx, eventlog.StreamName); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// A restart must not silently begin a new history.
	_, err = embedded.Open(ctx, embedded.Options{Dir: dir})
	wantErr(t, err, eventlog.ErrMissing, "backup")
}

func TestCommitLostInTheMiddle(t *testing.T) {
	l := openTest(t, embedded.Options{})
	for n := range uint64(5) {
		mustAppend(t, l, commit(moveOf("a"), fmt.Sprint(n), n, 1))
	}
	// A user can change the configuration and then delete messages. The server does not allow DenyDelete to be removed,
	// so a stream without it simulates one that lost a message.
	ctx := withTimeout(t, time.Minute)
	config := eventlog.StreamConfig("OTHER")
	config.Subjects, config.DenyDelete = []string{"other.*.*"}, false
	stream, err := l.JetStream().CreateStream(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := l.JetStream().Publish(ctx, "other.move.a", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.DeleteMsg(ctx, 3); err != nil {
		t.Fatal(err)
	}
	other := l.Of(stream)
	_, err = other.Head(ctx)
	wantErr(t, err, eventlog.ErrGap, "4 commits between sequences 1 and 5")
	_, err = other.Replay(ctx, 0, func(eventlog.Record) error { return nil })
	wantErr(t, err, eventlog.ErrGap)
	_, err = other.At(ctx, 3)
	wantErr(t, err, eventlog.ErrGap)
	// A delivery detects the gap without Head.
	cursor := uint64(0)
	err = other.DeliverFrom(ctx, &cursor, 5, func(eventlog.Record) error { return nil })
	wantErr(t, err, eventlog.ErrUnavailable, "skipped from 2 to 4") // unavailable first: a retry determines whether the gap is real
	err = other.DeliverFrom(ctx, &cursor, 5, func(eventlog.Record) error { return nil })
	wantErr(t, err, eventlog.ErrGap, "commit 2 is followed by 4")
}

// TestDamagedTail damages the newest block file in several ways. Each start must fail, or each read must report the
// gap.
func TestDamagedTail(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, block string){
		"truncated by one byte":    func(t *testing.T, block string) { truncate(t, block, 1) },
		"truncated by one commit":  func(t *testing.T, block string) { truncate(t, block, 500) },
		"a bit flipped at the end": func(t *testing.T, block string) { flipByte(t, block, -20) },
		"a bit flipped midway":     func(t *testing.T, block string) { flipByte(t, block, 3000) },
		"removed": func(t *testing.T, block string) {
			if err := os.Remove(block); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, index := range []string{"with its index", "without"} {
			t.Run(name+" "+index, func(t *testing.T) {
				dir := t.TempDir()
				l := openTest(t, embedded.Options{Dir: dir})
				for n := range uint64(20) {
					mustAppend(t, l, commit(moveOf("a"), fmt.Sprint(n), n, 1))
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				damage(t, glob(t, dir, "1.blk"))
				if index == "without" {
					if err := os.Remove(glob(t, dir, "index.db")); err != nil {
						t.Fatal(err)
					}
				}
				l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
				if err == nil {
					// The server trusted its index, so the reader must return an error.
					defer l.Close()
					if _, rerr := l.Read(t.Context(), moveOf("a"), 0); !errors.Is(rerr, eventlog.ErrGap) {
						t.Errorf("Read = %v, want ErrGap", rerr)
					}
					_, err = l.Replay(withTimeout(t, time.Minute), 0, func(eventlog.Record) error { return nil })
				}
				t.Log(err)
				if !errors.Is(err, eventlog.ErrGap) && !errors.Is(err, eventlog.ErrMissing) {
					t.Errorf("open or read of a damaged log = %v, want ErrGap or ErrMissing", err)
				}
			})
		}
	}
}

// TestAnotherLogInThePlace checks that Open refuses another log of the same length in its folder, with the IDs of both.
func TestAnotherLogInThePlace(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	var ids []string
	for _, dir := range dirs {
		l := openTest(t, embedded.Options{Dir: dir})
		mustAppend(t, l, commit(moveOf("a"), "0", 0, 1))
		ids = append(ids, l.ID())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dirs[0], "jetstream")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dirs[0], "jetstream"), os.DirFS(filepath.Join(dirs[1], "jetstream"))); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Open(t.Context(), embedded.Options{Dir: dirs[0]})
	wantErr(t, err, eventlog.ErrMissing, "had log "+ids[0]+", and now has log "+ids[1])
}

func truncate(t *testing.T, path string, by int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-by); err != nil {
		t.Fatal(err)
	}
}

// flipByte changes one byte; a negative at counts from the end.
func flipByte(t *testing.T, path string, at int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, dir, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", eventlog.StreamName, "msgs", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v for %s, error %v", found, name, err)
	}
	return found[0]
}

// TestPoisonedMessageStopsNobody checks that a message that was published by hand is delivered, and belongs to no
// aggregate.
func TestPoisonedMessageStopsNobody(t *testing.T) {
	l := openTest(t, embedded.Options{})
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	for _, subject := range []string{"scute.log.move.a_zz", "scute.log.MOVE.a", "scute.log.move.b"} {
		if _, err := l.JetStream().Publish(t.Context(), subject, []byte("by hand")); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, l, commit(moveOf("a"), "2", 1, 1))
	var bad int
	head, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error {
		if _, err := r.Events(); err != nil {
			bad++
			if len(r.Types()) != 0 || r.CommitID != "" {
				t.Errorf("message %d has types %v and commit ID %q, want none", r.Seq, r.Types(), r.CommitID)
			}
		}
		return nil
	})
	if head != 5 || bad != 3 || err != nil {
		t.Errorf("Replay = %d with %d invalid messages, error %v, want 5 with 3", head, bad, err)
	}
}
