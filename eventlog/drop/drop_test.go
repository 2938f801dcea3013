package drop_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/drop"
	"scute.dev/eventlog/embedded"
)

var decided = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// judge is a view for which what is called open has not ended.
type judge struct{ seen []string }

func newJudge() drop.Judge { return &judge{} }

func (j *judge) Apply(r eventlog.Record) error {
	if j.Stays(r.Aggregate) {
		j.seen = append(j.seen, fmt.Sprint(r.Seq, r.Aggregate))
	}
	return nil
}

func (j *judge) Stays(a eventlog.Aggregate) bool {
	return a.Kind == eventlog.KindDaemon || strings.HasPrefix(a.ID, "open")
}

func (j *judge) Hash() (string, error) { return strings.Join(j.seen, " "), nil }

func moveOf(id string) eventlog.Aggregate { return eventlog.Aggregate{Kind: eventlog.KindMove, ID: id} }

func commit(id, name string, expected uint64) eventlog.Commit {
	return eventlog.Commit{Aggregate: moveOf(id), ID: name, Expected: expected, Events: []eventlog.Event{{
		Type: "dev.scute.move.noted.v1", Time: decided, Actor: "user/test", Data: []byte(`{"id":"` + id + `"}`),
	}}}
}

func add(t *testing.T, l *eventlog.Log, id, name string, expected uint64) uint64 {
	t.Helper()
	r, err := l.Append(t.Context(), commit(id, name, expected))
	if err != nil {
		t.Fatal(err)
	}
	return r.Seq
}

func open(t *testing.T, dir string) *eventlog.Log {
	t.Helper()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func closeEpoch(t *testing.T, l *eventlog.Log) {
	t.Helper()
	if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test", Reason: "test", Time: decided}); err != nil {
		t.Fatal(err)
	}
}

// fill makes a log of three closed epochs and an open one. "open" is in all of them, "old" ends in the first.
func fill(t *testing.T, l *eventlog.Log) (lastOld, lastOpen uint64) {
	t.Helper()
	lastOld = add(t, l, "old", "1", 0)
	lastOld = add(t, l, "old", "2", lastOld)
	for n := range 4 {
		if n > 0 {
			closeEpoch(t, l)
		}
		lastOpen = add(t, l, "open", fmt.Sprint(n), lastOpen)
		add(t, l, fmt.Sprint("ended", n), "1", 0)
	}
	return lastOld, lastOpen
}

func back(t *testing.T, l *eventlog.Log, dir string) {
	t.Helper()
	if _, err := backup.Write(t.Context(), l, dir, backup.Options{Now: decided}); err != nil {
		t.Fatal(err)
	}
}

func mustDrop(t *testing.T, l *eventlog.Log, archive string, through int) *drop.Plan {
	t.Helper()
	p, err := drop.Prepare(t.Context(), l, archive, through, newJudge, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Carry(t.Context(), "user/test", "a test", decided, drop.Waits{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func replayed(t *testing.T, l *eventlog.Log) (out []string) {
	t.Helper()
	if _, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error {
		out = append(out, fmt.Sprint(r.Seq, " ", r.Aggregate, " ", r.CommitID))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDrop: a log of which epochs were dropped, twice, is read, appended to and continued as it was; what had ended is not begun again, and is
// not said to be unknown.
func TestDrop(t *testing.T) {
	dir, archive := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	l := open(t, dir)
	lastOld, lastOpen := fill(t, l)
	back(t, l, archive)
	before := replayed(t, l)
	whole, err := l.Read(t.Context(), moveOf("open"), 0)
	if err != nil {
		t.Fatal(err)
	}
	check := func(l *eventlog.Log, through int) {
		t.Helper()
		f := l.Floor()
		if f == nil || f.Through != through {
			t.Fatalf("the floor is %+v, want one through %d", f, through)
		}
		records, err := l.Read(t.Context(), moveOf("open"), 0)
		if err != nil || len(records) < len(whole) {
			t.Fatalf("%v, %v", records, err)
		}
		for i, r := range whole {
			if records[i].Fingerprint() != r.Fingerprint() {
				t.Errorf("commit %d is another one", r.Seq)
			}
		}
		var gone *eventlog.DroppedError
		if _, err := l.Read(t.Context(), moveOf("old"), 0); !errors.As(err, &gone) || gone.Last != lastOld {
			t.Errorf("reading what was dropped: %v", err)
		}
		if records, err := l.Read(t.Context(), moveOf("old"), lastOld); err != nil || len(records) != 0 {
			t.Errorf("%v, %v", records, err)
		}
		for seq := range lastOld {
			if _, err := l.At(t.Context(), seq+1); !errors.Is(err, eventlog.ErrDropped) {
				t.Errorf("commit %d: %v", seq+1, err)
			}
		}
		for _, c := range []eventlog.Commit{commit("old", "new", 0), commit("old", "new", 1), commit("ended0", "new", 0), commit("open", "new", 0)} {
			if _, err := l.Append(t.Context(), c); !errors.Is(err, eventlog.ErrConflict) {
				t.Errorf("%s after %d: %v", c.Aggregate, c.Expected, err)
			}
		}
		if r, err := l.Append(t.Context(), commit("old", "2", 1)); err != nil || !r.AlreadyStored || r.Seq != lastOld {
			t.Errorf("%+v, %v", r, err)
		}
		for _, after := range []uint64{1, f.Seq - 3} {
			if _, err := l.Replay(t.Context(), after, func(eventlog.Record) error { return nil }); !errors.Is(err, eventlog.ErrDropped) {
				t.Errorf("replaying after %d: %v", after, err)
			}
		}
		var after []string
		if _, err := l.Replay(t.Context(), f.Seq-1, func(r eventlog.Record) error {
			after = append(after, fmt.Sprint(r.Seq, " ", r.Aggregate, " ", r.CommitID))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for i, want := range before[f.Seq-1:] {
			if after[i] != want {
				t.Errorf("%s, want %s", after[i], want)
			}
		}
		if err := l.Health(t.Context()); err != nil {
			t.Error(err)
		}
		list, err := l.Epochs(t.Context())
		if err != nil || !list[0].Dropped || list[0].Number != through || list[1].Number != through+1 || list[1].First != f.Seq {
			t.Errorf("%+v, %v", list, err)
		}
		if s, err := l.Stats(t.Context()); err != nil || s.Epoch != 4 {
			t.Errorf("%+v, %v", s, err)
		}
	}
	p := mustDrop(t, l, archive, 1)
	if p.Kept == 0 || p.Tombstones != 2 || p.Dropped != 3 || p.Objects[eventlog.KindMove] != 1 {
		t.Errorf("%+v", p)
	}
	check(l, 1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir)
	check(l, 1)
	back(t, l, archive)
	mustDrop(t, l, archive, 3)
	check(l, 3)
	add(t, l, "open", "more", lastOpen)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir)
	check(l, 3)
	add(t, l, "old", "again", lastOld)
	if records, err := l.Read(t.Context(), moveOf("old"), lastOld); err != nil || len(records) != 1 {
		t.Errorf("%v, %v", records, err)
	}
	closeEpoch(t, l)
	back(t, l, archive)
	mustDrop(t, l, archive, 4)
	if _, err := backup.Write(t.Context(), l, filepath.Join(t.TempDir(), "new"), backup.Options{Now: decided}); !errors.Is(err, eventlog.ErrDropped) {
		t.Errorf("a backup into another folder than the archive: %v", err)
	}
	restored := t.TempDir()
	m, err := backup.Verify(t.Context(), archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := embedded.Restore(t.Context(), embedded.Options{Dir: restored}, backup.Restored(archive, m, nil, nil), embedded.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := replayed(t, open(t, restored)); strings.Join(got[:len(before)], "\n") != strings.Join(before, "\n") {
		t.Errorf("restored:\n%s", strings.Join(got, "\n"))
	}
}

// TestReaderInsideWhatIsKept: one that reads what is kept while more is dropped has not had all of the ends, and says so; one that is past it
// continues.
func TestReaderInsideWhatIsKept(t *testing.T) {
	l, archive := open(t, t.TempDir()), filepath.Join(t.TempDir(), "archive")
	_, last := fill(t, l)
	back(t, l, archive)
	mustDrop(t, l, archive, 1)
	back(t, l, archive)
	inside, past := make(chan error, 1), make(chan error, 1)
	began, dropped := make(chan struct{}), make(chan struct{})
	errDone := errors.New("done")
	go func() {
		first := true
		inside <- l.Follow(t.Context(), 0, func(eventlog.Record) error {
			if first {
				first = false
				close(began)
				<-dropped
				return nil
			}
			return nil
		})
	}()
	head, err := l.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		past <- l.Follow(t.Context(), head, func(eventlog.Record) error { return errDone })
	}()
	<-began
	mustDrop(t, l, archive, 3)
	close(dropped)
	if err := <-inside; !errors.Is(err, eventlog.ErrDropped) {
		t.Errorf("inside what is kept: %v", err)
	}
	add(t, l, "open", "later", last)
	if err := <-past; !errors.Is(err, errDone) {
		t.Errorf("past it: %v", err)
	}
}

// TestSparse: a server that hears nothing for as long as it takes to pass over millions of commits does not give up.
func TestSparse(t *testing.T) {
	l, archive := open(t, t.TempDir()), filepath.Join(t.TempDir(), "archive")
	fill(t, l)
	back(t, l, archive)
	copied := 0
	p, err := drop.Prepare(t.Context(), l, archive, 2, newJudge, func(doing string, _, _ uint64) {
		if doing == "copying" {
			if copied++; copied == 2 {
				time.Sleep(7 * time.Second) // longer than a server waits
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Carry(t.Context(), "user/test", "a test", decided, drop.Waits{}); err != nil || copied < 3 {
		t.Errorf("%v, %d copied", err, copied)
	}
}
