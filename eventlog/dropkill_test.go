package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/drop"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// longLives is a judge for which only what is called "long" has not ended.
type longLives struct{ seen []string }

func newLongLives() drop.Judge { return &longLives{} }

func (j *longLives) Apply(r eventlog.Record) error {
	if j.Stays(r.Aggregate) {
		j.seen = append(j.seen, fmt.Sprint(r.Seq))
	}
	return nil
}

func (j *longLives) Stays(a eventlog.Aggregate) bool {
	return a.Kind == eventlog.KindDaemon || a.ID == "long"
}

func (j *longLives) Hash() (string, error) { return strings.Join(j.seen, " "), nil }

// playDropper drops the epochs of the log in os.Args[1] that are in the archive os.Args[2], up to os.Args[3], and kills itself at the step os.Args[4].
func playDropper() {
	ctx := context.Background()
	l, err := embedded.Open(ctx, embedded.Options{Dir: os.Args[1]})
	if err == nil {
		l.OnClosing(func(step string) {
			if step == os.Args[4] {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		})
		through, _ := strconv.Atoi(os.Args[3])
		err = dropThrough(ctx, l, os.Args[2], through)
	}
	fmt.Println("end", err)
	os.Exit(1)
}

func dropThrough(ctx context.Context, l *eventlog.Log, archive string, through int) error {
	p, err := drop.Prepare(ctx, l, archive, through, newLongLives, nil)
	if err != nil {
		return err
	}
	return p.Carry(ctx, "user/test", "a test", decided, drop.Waits{})
}

// droppable fills a log with four epochs, and gives its archive. "long" has a commit in each.
func droppable(t *testing.T, l *eventlog.Log) (archive string) {
	t.Helper()
	last := uint64(0)
	for n := range 4 {
		if n > 0 {
			closeEpoch(t, l)
		}
		mustAppend(t, l, commit(moveOf(fmt.Sprint("m", n)), "1", 0, 2))
		last = mustAppend(t, l, commit(moveOf("long"), fmt.Sprint(n), last, 1))
	}
	archive = filepath.Join(t.TempDir(), "archive")
	if _, err := backup.Write(t.Context(), l, archive, backup.Options{Now: decided}); err != nil {
		t.Fatal(err)
	}
	return archive
}

// streams are those of a log's server.
func streams(t *testing.T, l *eventlog.Log) (out []string) {
	t.Helper()
	list := l.JetStream().StreamNames(t.Context())
	for name := range list.Name() {
		if strings.Contains(name, "_KEPT_") {
			name = name[:strings.LastIndex(name, "_")]
		}
		out = append(out, name)
	}
	if list.Err() != nil {
		t.Fatal(list.Err())
	}
	slices.Sort(out)
	return out
}

// hasDropped checks that a log begins with what is kept of its first epochs, and answers as before.
func hasDropped(t *testing.T, l *eventlog.Log, through int) {
	t.Helper()
	if f := l.Floor(); f == nil || f.Through != through {
		t.Fatalf("the floor is %+v, want one through %d", f, through)
	}
	if records, err := l.Read(t.Context(), moveOf("long"), 0); err != nil || len(records) != 4 {
		t.Errorf("%v, %v", records, err)
	}
	for n := range through {
		_, err := l.Read(t.Context(), moveOf(fmt.Sprint("m", n)), 0)
		wantErr(t, err, eventlog.ErrDropped)
		_, err = l.Append(t.Context(), commit(moveOf(fmt.Sprint("m", n)), "another", 0, 1))
		wantErr(t, err, eventlog.ErrConflict)
	}
	if err := l.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestKilledWhileDropping: a drop that a death cut off at any step either has not happened, or is ended by the next process; run again, it ends
// the same. So is one that follows another one.
func TestKilledWhileDropping(t *testing.T) {
	for _, before := range []int{0, 1} {
		for _, step := range []string{"made", "compared", "decided", "switched", "deleted"} {
			t.Run(fmt.Sprint(step, before), func(t *testing.T) {
				dir := t.TempDir()
				l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				archive := droppable(t, l)
				first := []string{"SCUTE", "SCUTE_2", "SCUTE_3", "SCUTE_4"}
				if before > 0 {
					if err := dropThrough(t.Context(), l, archive, before); err != nil {
						t.Fatal(err)
					}
					first = []string{"SCUTE_2", "SCUTE_3", "SCUTE_4", "SCUTE_KEPT_1"}
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				c := startChild(t, "drop", dir, archive, "3", step)
				for c.lines.Scan() {
					t.Fatalf("the child said %q", c.lines.Text())
				}
				c.kill()
				l = openTest(t, embedded.Options{Dir: dir})
				if step == "made" || step == "compared" {
					if got := streams(t, l); !slices.Equal(got, first) {
						t.Errorf("nothing was decided, and the streams are %v, want %v", got, first)
					}
					if err := dropThrough(t.Context(), l, archive, 3); err != nil {
						t.Fatal(err)
					}
				}
				hasDropped(t, l, 3)
				if got := streams(t, l); !slices.Equal(got, []string{"SCUTE_4", "SCUTE_KEPT_3"}) {
					t.Errorf("the streams are %v", got)
				}
				wantErr(t, dropThrough(t.Context(), l, archive, 3), eventlog.ErrNothingToDrop)
			})
		}
	}
}

// TestDropOnAServer: on a server that others use, those that had the log open before continue, and may append meanwhile; what is dropped is
// deleted when the server has surely written what is kept; and no other log begins beside what is kept.
func TestDropOnAServer(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	o := eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true}
	writer, old := connectTest(t, o), connectTest(t, o)
	archive := droppable(t, writer)
	o.Create = false
	reader := connectTest(t, o)
	stale := connectTest(t, o)
	if n := len(replayed(t, stale, 0)); n != 14 {
		t.Fatalf("%d commits", n)
	}
	writer.OnClosing(func(step string) {
		if step == "made" {
			mustAppend(t, old, commit(moveOf("meanwhile"), "1", 0, 1))
		}
	})
	if err := dropThrough(t.Context(), writer, archive, 2); err != nil {
		t.Fatal(err)
	}
	all := []string{"SCUTE", "SCUTE_2", "SCUTE_3", "SCUTE_4", "SCUTE_KEPT_2"}
	if got := streams(t, writer); !slices.Equal(got, all) {
		t.Errorf("the streams are %v, want all until the server has written what is kept", got)
	}
	if n := len(replayed(t, reader, 0)); n != 16 {
		t.Errorf("%d commits", n)
	}
	writer.SettleAfter(0)
	if err := writer.Droppable(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if got := streams(t, writer); !slices.Equal(got, []string{"SCUTE_3", "SCUTE_4", "SCUTE_KEPT_2"}) {
		t.Errorf("the streams are %v", got)
	}
	for _, l := range []*eventlog.Log{writer, old, reader, stale} {
		if l == old || l == writer {
			mustAppend(t, l, commit(moveOf(fmt.Sprintf("new%p", l)), "1", 0, 1))
		}
		if records, err := l.Read(t.Context(), moveOf("long"), 0); err != nil || len(records) != 4 {
			t.Errorf("%v, %v", records, err)
		}
		if l == writer || l == old {
			hasDropped(t, l, 2)
		}
		_, err := l.Read(t.Context(), moveOf("m0"), 0)
		wantErr(t, err, eventlog.ErrDropped)
		_, err = l.Replay(t.Context(), 2, func(eventlog.Record) error { return nil })
		wantErr(t, err, eventlog.ErrDropped)
	}
	// A program that knows nothing of floors would begin another log.
	if _, err := writer.JetStream().CreateStream(t.Context(), eventlog.StreamConfig("SCUTE")); err == nil {
		t.Error("another log begins beside what is kept of one")
	}
	// What is kept is lost, too: then the log is lost, and no new one begins.
	for name := range writer.JetStream().StreamNames(t.Context()).Name() {
		if strings.Contains(name, "KEPT") {
			if err := writer.JetStream().DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	o.Create = true
	_, err := eventlog.Connect(t.Context(), o)
	wantErr(t, err, eventlog.ErrMissing)
	wantErr(t, writer.Health(t.Context()), eventlog.ErrMissing)
}

// TestDropBesideAStart: a writer that opens the log while a drop works may take it for one that died; then the drop decides nothing, however long it
// was paused, and can be run again.
func TestDropBesideAStart(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	o := eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true}
	l := connectTest(t, o)
	l.SettleAfter(0)
	archive := droppable(t, l)
	before := streams(t, l)
	for _, at := range []string{"made", "compared"} {
		l.OnClosing(func(step string) {
			if step == at {
				connectTest(t, o)
			}
		})
		wantErr(t, dropThrough(t.Context(), l, archive, 2), eventlog.ErrConflict, "run it again")
		if got := streams(t, l); !slices.Equal(got, before) {
			t.Errorf("%s: the streams are %v, were %v", at, got, before)
		}
		if l.Floor() != nil {
			t.Errorf("%s: the log has a floor: %+v", at, l.Floor())
		}
	}
	l.OnClosing(nil)
	if err := dropThrough(t.Context(), l, archive, 2); err != nil {
		t.Fatal(err)
	}
	hasDropped(t, l, 2)
}

// TestDroppedByTheListener: with the token of a role a log of which epochs were dropped is read and appended to, and nothing more can be dropped.
func TestDroppedByTheListener(t *testing.T) {
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	archive := droppable(t, l)
	if err := errors.Join(dropThrough(t.Context(), l, archive, 2), l.Close()); err != nil {
		t.Fatal(err)
	}
	access := &embedded.Access{}
	l = openTest(t, embedded.Options{Dir: dir, Listen: "127.0.0.1:0", Access: access})
	access.Set(embedded.Reader, readerToken)
	access.Set(embedded.Operator, operatorToken)
	reader := connectTest(t, eventlog.ExternalOptions{URL: l.URL(), Token: readerToken})
	if records, err := reader.Read(t.Context(), moveOf("long"), 0); err != nil || len(records) != 4 {
		t.Errorf("%v, %v", records, err)
	}
	operator := connectTest(t, eventlog.ExternalOptions{URL: l.URL(), Token: operatorToken})
	hasDropped(t, operator, 2)
	if n := len(replayedAny(t, reader)); n == 0 {
		t.Error("nothing is replayed")
	}
	wantErr(t, dropThrough(t.Context(), operator, archive, 3), eventlog.ErrPermission)
	hasDropped(t, l, 2)
}

// replayedAny are the sequences that a replay gives.
func replayedAny(t *testing.T, l *eventlog.Log) (out []uint64) {
	t.Helper()
	if _, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error { out = append(out, r.Seq); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRefusedDrops: what is not surely in the archive is not dropped, and nothing is changed.
func TestRefusedDrops(t *testing.T) {
	l := openTest(t, embedded.Options{Dir: t.TempDir()})
	archive := droppable(t, l)
	before := streams(t, l)
	refuse := func(name, archive string, through int, says string) {
		t.Helper()
		err := dropThrough(t.Context(), l, archive, through)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	refuse("the open epoch", archive, 4, "epoch 4 is not closed")
	refuse("no epoch", archive, 0, "epoch 0 is not closed")
	refuse("no archive", t.TempDir(), 1, "back the log up")
	other := openTest(t, embedded.Options{Dir: t.TempDir()})
	refuse("of another log", droppable(t, other), 1, "is an archive of log "+other.ID())
	mustAppend(t, l, commit(moveOf("more"), "1", 0, 1))
	closeEpoch(t, l)
	refuse("too short", archive, 4, "the archive in "+archive+" ends with commit 14")
	before = append(before, "SCUTE_5")
	parts, err := filepath.Glob(filepath.Join(archive, "log-*"))
	if err != nil || len(parts) == 0 {
		t.Fatal(err)
	}
	text, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(parts[0], text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	refuse("half written", archive, 1, "is damaged")
	if got := streams(t, l); !slices.Equal(got, before) {
		t.Errorf("the streams are %v, were %v", got, before)
	}
	for _, reason := range []string{"", "a\x1b[2Jb", "two\nlines", strings.Repeat("x", 2000)} {
		if eventlog.CheckReason(reason) == nil {
			t.Errorf("%.20q is a reason", reason)
		}
	}
}
