package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"strings"
	"testing"
	"time"

	"scute.dev/backup/schedule"
	"scute.dev/backup/store"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/mover/archive"
)

const id = "fleet/nightly/01234567"

// fixture is a log, a store in a folder, and a runner with a fixed clock.
type fixture struct {
	*testing.T
	log   *eventlog.Log
	store *store.Folder
	now   time.Time
	*Runner
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{T: t, log: logtest.Open(t), now: time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	w.Runner = &Runner{
		Log: w.log, Incarnation: "one", Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now },
		Destination: func(context.Context, *schedule.Spec) (Store, error) { return store.OpenFolder(dir) },
	}
	var err error
	if w.store, err = store.OpenFolder(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	spec := schedule.Spec{
		Namespace: "fleet", Name: "nightly", Generation: 1, Schedule: "0 3 * * *", TimeZone: "Etc/UTC", Timeout: schedule.Duration(time.Minute), All: true, KeepLast: 1,
	}
	if err := w.Configure(t.Context(), id, "test", spec, ""); err != nil {
		t.Fatal(err)
	}
	return w
}

// view returns an empty view with the clock of the fixture.
func (w *fixture) view() *Schedules {
	v := NewSchedules()
	v.Now = func() time.Time { return w.now }
	return v
}

// record appends events as an earlier process.
func (w *fixture) record(events ...schedule.Event) {
	w.Helper()
	root := w.root(id, "daemon/earlier")
	if err := errors.Join(root.Read(w.Context()), root.Append(w.Context(), events...)); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) state() *schedule.State {
	w.Helper()
	root := w.root(id, "test")
	if err := root.Read(w.Context()); err != nil {
		w.Fatal(err)
	}
	return root.State
}

func (w *fixture) drive() {
	w.Helper()
	if err := w.Drive(w.Context(), id); err != nil {
		w.Fatal(err)
	}
}

// put writes a backup with an index, and with the list of checksums if it is complete.
func (w *fixture) put(place, backup string, complete bool) {
	w.Helper()
	files := map[string]string{archive.IndexFile: `{"version":"v","id":"` + backup + `","takenAt":"2026-11-25T09:00:00Z"}`, "objects/A.json": "{}"}
	if complete {
		files[archive.SumsFile] = "x"
	}
	for name, text := range files {
		if err := w.store.Put(w.Context(), path.Join(place, name), strings.NewReader(text), int64(len(text))); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *fixture) hasBackup(place string) bool {
	w.Helper()
	in, err := w.store.Get(w.Context(), path.Join(place, archive.IndexFile))
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	if err != nil {
		w.Fatal(err)
	}
	_, err = io.ReadAll(in)
	if err := errors.Join(err, in.Close()); err != nil {
		w.Fatal(err)
	}
	return true
}

// TestProcessEnded checks that an interrupted backup is kept if it was complete, and otherwise removed and tried again.
func TestProcessEnded(t *testing.T) {
	for _, complete := range []bool{true, false} {
		w := newFixture(t)
		w.record(schedule.Started{ID: "a", Path: "place", Request: "x"}, schedule.Requested{Value: "x"})
		w.put("place", "a", complete)
		w.drive()
		s := w.state()
		if s.Working || w.hasBackup("place") != complete || (len(s.Kept) == 1) != complete || len(s.Incomplete) > 0 {
			t.Errorf("complete %t: files exist %t, state %+v", complete, w.hasBackup("place"), s)
		}
		if s.Holder != "one" {
			t.Errorf("holder = %q, want one", s.Holder)
		}
		step := schedule.NextStep(s, w.now)
		if again := !complete; (step.At.Sub(w.now) < time.Minute) != again {
			t.Errorf("complete %t: next step %+v", complete, step)
		}
	}
}

// TestRemoved checks that expired backups are removed. If the path of one now has another backup,
// its files are kept, and the expired backup is forgotten.
func TestRemoved(t *testing.T) {
	w := newFixture(t)
	for i, name := range []string{"a", "b", "c"} {
		w.record(schedule.Completed{Backup: schedule.Backup{ID: name, Path: name, TakenAt: w.now.Add(time.Duration(i) * time.Second)}})
		w.put(name, name, true)
	}
	w.put("b", "somebody-else", true)
	w.drive()
	s := w.state()
	if w.hasBackup("a") || !w.hasBackup("b") || !w.hasBackup("c") || len(s.Kept) != 1 || s.Kept[0].ID != "c" {
		t.Errorf("a exists %t, b %t, c %t, kept %+v", w.hasBackup("a"), w.hasBackup("b"), w.hasBackup("c"), s.Kept)
	}
}

// TestRemovalFails checks that the reason for a failed removal is recorded, and that it is tried again later.
func TestRemovalFails(t *testing.T) {
	w := newFixture(t)
	w.makeUnreachable()
	for _, name := range []string{"a", "b"} {
		w.record(schedule.Completed{Backup: schedule.Backup{ID: name, Path: name, TakenAt: w.now}})
	}
	w.drive()
	if s := w.state(); s.RemovalProblem.Field != "spec.destination.s3.endpoint" || len(s.Kept) != 1 || len(s.Expiring) != 1 || !schedule.NextStep(s, w.now).At.After(w.now) {
		t.Errorf("removal problem %+v, next step %+v", s.RemovalProblem, schedule.NextStep(s, w.now))
	}
}

func (w *fixture) makeUnreachable() {
	w.Destination = func(context.Context, *schedule.Spec) (Store, error) {
		return nil, &store.Error{Reason: "StoreUnreachable", Field: store.FieldEndpoint, Message: "away", Next: "look"}
	}
}

// TestManyExpired checks that each event of a removal fits into the log, whatever the number of backups and of their
// clusters.
func TestManyExpired(t *testing.T) {
	w := newFixture(t)
	clusters := make([]string, 100)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("cluster-of-a-team-%03d", i)
	}
	var made []schedule.Event
	for i := range maxExpiredPerEvent + 2 {
		name := fmt.Sprint(i)
		made = append(made, schedule.Completed{Backup: schedule.Backup{ID: name, Path: name, TakenAt: w.now, Clusters: clusters}})
	}
	w.record(made...)
	w.drive()
	if s := w.state(); len(s.Kept) != 1 || len(s.Expiring) > 0 {
		t.Errorf("%d backups are kept and %d are expiring, want 1 and 0", len(s.Kept), len(s.Expiring))
	}
}

// TestStoreIsAwayAtTheStart checks that a complete backup is not removed because the store was unreachable when the
// next process started.
func TestStoreIsAwayAtTheStart(t *testing.T) {
	w := newFixture(t)
	w.record(schedule.Started{ID: "a", Path: "place", Due: w.now})
	w.put("place", "a", true)
	back := w.Destination
	w.makeUnreachable()
	w.drive()
	if s := w.state(); s.Failures != 1 || len(s.Incomplete) != 1 {
		t.Fatalf("state = %+v, want one failure", s)
	}
	w.Destination, w.now = back, w.now.Add(4*time.Second) // before the retry
	w.record(schedule.Configured{Spec: w.state().Spec})
	w.record(schedule.Started{ID: "b", Path: "other", Due: w.now}, schedule.Failed{ID: "b", Unwritten: true})
	w.drive()
	if s := w.state(); !w.hasBackup("place") || len(s.Kept) != 1 || s.Kept[0].ID != "a" || len(s.Incomplete) > 0 {
		t.Errorf("files exist %t, state %+v", w.hasBackup("place"), s)
	}
}

// TestDamagedIndex checks that a backup with a damaged index is not touched, and that others are still removed.
func TestDamagedIndex(t *testing.T) {
	w := newFixture(t)
	for _, name := range []string{"a", "b", "c"} {
		w.record(schedule.Completed{Backup: schedule.Backup{ID: name, Path: name, TakenAt: w.now}})
		w.put(name, name, true)
	}
	if err := w.store.Put(t.Context(), "a/"+archive.IndexFile, strings.NewReader("{"), 1); err != nil {
		t.Fatal(err)
	}
	w.drive()
	if s := w.state(); !w.hasBackup("a") || w.hasBackup("b") || !w.hasBackup("c") || len(s.Kept) != 1 || s.RemovalProblem != (schedule.Problem{}) {
		t.Errorf("a exists %t, b %t, c %t, state %+v", w.hasBackup("a"), w.hasBackup("b"), w.hasBackup("c"), s)
	}
}

// TestChangedWhileItBegins checks that a backup does not start if its schedule was removed after the decision.
func TestChangedWhileItBegins(t *testing.T) {
	w := newFixture(t)
	if err := w.Configure(t.Context(), id, "test", w.state().Spec, "now"); err != nil {
		t.Fatal(err)
	}
	d := &drive{root: w.root(id, "daemon/one"), runner: w.Runner}
	if err := errors.Join(d.Read(t.Context()), d.claim(t.Context())); err != nil {
		t.Fatal(err)
	}
	step := schedule.NextStep(d.State, w.now)
	if err := w.End(t.Context(), id, "test", "gone"); err != nil {
		t.Fatal(err)
	}
	if err := d.step(t.Context(), step); err != nil || step.Action != schedule.Begin {
		t.Fatalf("step = %+v, error %v, want Begin", step, err)
	}
	if s := w.state(); s.Running != nil {
		t.Errorf("a removed schedule started a backup: %+v", s.Running)
	}
}

// TestKeptMeanwhile checks that no backup is removed if the user raises the retention or deletes the BackupSchedule
// after the decision.
func TestKeptMeanwhile(t *testing.T) {
	for name, change := range map[string]func(*fixture) error{
		"more are kept": func(w *fixture) error {
			spec := w.state().Spec
			spec.Generation, spec.KeepLast = 2, 3
			return w.Configure(t.Context(), id, "test", spec, "")
		},
		"it is deleted": func(w *fixture) error { return w.End(t.Context(), id, "test", "gone") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			for _, name := range []string{"a", "b", "c"} {
				w.record(schedule.Completed{Backup: schedule.Backup{ID: name, Path: name, TakenAt: w.now}})
				w.put(name, name, true)
			}
			d := &drive{root: w.root(id, "daemon/one"), runner: w.Runner}
			if err := errors.Join(d.Read(t.Context()), d.claim(t.Context())); err != nil {
				t.Fatal(err)
			}
			step := schedule.NextStep(d.State, w.now)
			if err := change(w); err != nil {
				t.Fatal(err)
			}
			if err := d.step(t.Context(), step); err != nil || step.Action != schedule.Remove {
				t.Fatalf("step = %+v, error %v, want Remove", step, err)
			}
			if s := w.state(); !w.hasBackup("a") || !w.hasBackup("b") || !w.hasBackup("c") || len(s.Kept) != 3 {
				t.Errorf("a exists %t, b %t, c %t, kept %+v", w.hasBackup("a"), w.hasBackup("b"), w.hasBackup("c"), s.Kept)
			}
		})
	}
}

// TestAttemptFails checks that a failed backup is recorded with its cause, and leaves no files in the local folder.
func TestAttemptFails(t *testing.T) {
	w := newFixture(t)
	w.Select = func(context.Context, string, string) ([]string, error) { return nil, nil }
	spec := w.state().Spec
	spec.Generation, spec.All, spec.BySelector, spec.Selector = 2, false, true, "tier=prod"
	if err := w.Configure(t.Context(), id, "test", spec, "now"); err != nil {
		t.Fatal(err)
	}
	w.drive()
	s := w.state()
	if s.Problem.Reason != "NothingSelected" || s.Failures != 1 || s.BegunRequest != "now" || len(s.Incomplete) > 0 {
		t.Errorf("state = %+v", s)
	}
}

// TestViewOfManyBackups checks that the view's size does not grow with the number of Clusters in a backup.
func TestViewOfManyBackups(t *testing.T) {
	w := newFixture(t)
	clusters := make([]string, 1000)
	for i := range clusters {
		clusters[i] = fmt.Sprintf("cluster-of-a-team-%04d", i)
	}
	const backups = 10
	for i := range backups {
		w.record(schedule.Completed{Backup: schedule.Backup{ID: fmt.Sprint(i), Path: fmt.Sprint(i), TakenAt: w.now, Clusters: clusters}})
	}
	v, size := w.view(), 0
	if _, err := w.log.Replay(t.Context(), 0, v.Apply); err != nil {
		t.Fatal(err)
	}
	for _, e := range v.All() {
		size += len(fmt.Sprintf("%+v", *e.State))
	}
	if s, _ := v.Status(id); s.Kept != backups || s.Backups[0].Clusters != len(clusters) || size > 10_000 {
		t.Errorf("state has %d bytes, status %+v", size, s)
	}
}

// TestView checks that the view has the replayed state, and that a schedule that ended is not due.
func TestView(t *testing.T) {
	w := newFixture(t)
	w.record(schedule.Started{ID: "a", Path: "a"}, schedule.Completed{Backup: schedule.Backup{ID: "a", Path: "a", TakenAt: w.now, Clusters: []string{"prod"}, Objects: 3}})
	fill := func(v *Schedules) {
		if _, err := w.log.Replay(t.Context(), 0, v.Apply); err != nil {
			t.Fatal(err)
		}
	}
	v := w.view()
	fill(v)
	if got, known := v.Status(id); !known || got.Kept != 1 {
		t.Errorf("known %t, status %+v", known, got)
	}
	if wait, due := v.Due(id); !due || wait != maxWait {
		t.Errorf("due %t after %s", due, wait)
	}
	if err := w.End(t.Context(), id, "test", "gone"); err != nil {
		t.Fatal(err)
	}
	ended := w.view()
	fill(ended)
	if _, due := ended.Due(id); due || len(ended.Open("fleet", "nightly")) > 0 {
		t.Error("a schedule that ended is due")
	}
}
