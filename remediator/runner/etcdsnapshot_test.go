package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/supervise"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

// saved is a world whose policy has a snapshot of etcd taken before a machine is deleted first, which is the only way.
type saved struct {
	*world
	begun chan string // the names of those that were begun
	end   chan error  // how the next one ends
	taken remediator.SnapshotResult
}

func newSaved(name string) *saved {
	w := &saved{world: newWorld(name), begun: make(chan string, 10), end: make(chan error, 10)}
	w.facts.Policy.Methods = map[v1alpha1.RepairMethod]bool{v1alpha1.MethodOwnerRemediation: true}
	w.facts.Policy.Snapshots = remediator.Snapshots{Wanted: true, MaxAge: time.Hour, Deadline: 10 * time.Minute}
	w.taken = remediator.SnapshotResult{Node: "m2", Place: "s3://backups/" + name, Bytes: 5}
	w.failNode(0)
	return w
}

func (w *saved) snapshot(ctx context.Context, _ *remediator.Facts, a remediator.Action) (remediator.SnapshotResult, error) {
	w.begun <- a.Value
	select {
	case err := <-w.end:
		return w.taken, err
	case <-ctx.Done():
		return remediator.SnapshotResult{}, ctx.Err()
	}
}

// reconcileUntil reconciles until something is so.
func (w *saved) reconcileUntil(t *testing.T, r *runner.Runner, so func(s remediator.State) bool) (state remediator.State) {
	t.Helper()
	for t.Context().Err() == nil {
		if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
		if state = stateOf(t, r.Log, w.facts.Owner.Owner); so(state) {
			return state
		}
	}
	return state
}

func handedOver(s remediator.State) bool { return s.Active != nil }

// TestASnapshotTakesNoReconciliation: while a snapshot is taken, turns are made as always, and begin nothing. It is taken once.
func TestASnapshotTakesNoReconciliation(t *testing.T) {
	l, w := logtest.Open(t), newSaved("slow")
	r := process(t, "one", l, w.world)
	r.Snapshot = w.snapshot
	for range 3 {
		again, err := r.Reconcile(t.Context(), w.facts.Owner.Owner)
		if err != nil || again > 5*time.Second {
			t.Fatalf("looks again in %s: %v", again, err)
		}
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); s.Active != nil || s.Care.Snapshot.Active == nil {
		t.Fatalf("%+v", s.Care.Snapshot)
	}
	w.end <- nil
	s := w.reconcileUntil(t, r, handedOver)
	if got := s.Care.Snapshot; got.Place != "s3://backups/slow" || got.Active != nil {
		t.Errorf("%+v", got)
	}
	if <-w.begun; len(w.begun) > 0 {
		t.Error("it was taken twice")
	}
}

type remediableError struct{ error }

func (remediableError) Remedy() string { return "make the bucket" }

// TestASnapshotThatFails: the cause and the remedy are in the log, and it is tried again when the time has come.
func TestASnapshotThatFails(t *testing.T) {
	l, w := logtest.Open(t), newSaved("fails")
	r := process(t, "one", l, w.world)
	r.Snapshot = w.snapshot
	w.end <- remediableError{errors.New("there is no bucket, password=hunter2")}
	s := w.reconcileUntil(t, r, func(s remediator.State) bool { return s.Care.Snapshot.Failures > 0 })
	if got := s.Care.Snapshot; got.Next != "make the bucket" || got.Err != "there is no bucket, password=(removed)" {
		t.Errorf("%+v", got)
	}
	w.now = w.now.Add(2 * time.Minute)
	w.end <- nil
	w.reconcileUntil(t, r, handedOver)
	if len(w.begun) != 2 {
		t.Errorf("%d attempts were made", len(w.begun))
	}
}

// TestASnapshotOutlivesTheProcess: the next process takes it again, under the same name.
func TestASnapshotOutlivesTheProcess(t *testing.T) {
	l, w := logtest.Open(t), newSaved("dies")
	one, ended := process(t, "one", l, w.world), make(chan struct{})
	one.Snapshot = func(ctx context.Context, f *remediator.Facts, a remediator.Action) (remediator.SnapshotResult, error) {
		defer close(ended)
		return w.snapshot(ctx, f, a)
	}
	ctx, dies := context.WithCancel(t.Context())
	if _, err := one.Reconcile(ctx, w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	name := <-w.begun
	dies()
	<-ended // what comes now is for the next one
	w.now = w.now.Add(time.Minute)
	two := process(t, "two", l, w.world)
	two.Snapshot = w.snapshot
	w.end <- nil
	w.reconcileUntil(t, two, handedOver)
	if again := <-w.begun; again != name {
		t.Errorf("%s, then %s", name, again)
	}
}

// TestSnapshotsHavePlaces: so many are taken at once; one that gets no place in its time says so.
func TestSnapshotsHavePlaces(t *testing.T) {
	l, first, second := logtest.Open(t), newSaved("first"), newSaved("second")
	places := supervise.NewPlaces(1)
	start := func(w *saved) *runner.Runner {
		r := process(t, "one", l, w.world)
		r.Snapshot, r.Places = w.snapshot, places
		return r
	}
	one, two := start(first), start(second)
	if _, err := one.Reconcile(t.Context(), first.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	<-first.begun // it has the place
	if _, err := two.Reconcile(t.Context(), second.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	if len(second.begun) > 0 {
		t.Error("two were taken at once")
	}
	first.end <- nil
	<-second.begun
	second.end <- nil
	second.reconcileUntil(t, two, handedOver)
}

// TestASnapshotWhoseTimeIsOver: one that got no place says so, and not that the database or the destination would be at fault. One that got its
// place gives it back.
func TestASnapshotWhoseTimeIsOver(t *testing.T) {
	l, slow, waits := logtest.Open(t), newSaved("slow"), newSaved("waits")
	places := supervise.NewPlaces(1)
	fails := func(w *saved) (next string) {
		t.Helper()
		w.facts.Policy.Snapshots.Deadline = 500 * time.Millisecond
		r := process(t, "one", l, w.world)
		r.Snapshot, r.Places = w.snapshot, places
		s := w.reconcileUntil(t, r, func(s remediator.State) bool { return s.Care.Snapshot.Failures > 0 })
		return s.Care.Snapshot.Err + "; " + s.Care.Snapshot.Next
	}
	held := places.Place(slow.facts.Owner.Namespace)
	<-held.Ask()
	if why := fails(waits); !strings.Contains(why, "others were taken") || !strings.Contains(why, "clusterBackups.concurrency") || len(waits.begun) > 0 {
		t.Errorf("without a place: %s", why)
	}
	held.Give()
	if why := fails(slow); !strings.HasPrefix(why, "the snapshot was not stored in 500ms; see how large the database is") || len(slow.begun) != 1 {
		t.Errorf("%s", why)
	}
	if err := held.Take(t.Context()); err != nil {
		t.Errorf("the place is not free: %v", err)
	}
}

// TestASnapshotAfterTheClockWasSetBack: the next process takes it for as long as it may take, and not until a time that is hours ahead, for
// which it would keep its place.
func TestASnapshotAfterTheClockWasSetBack(t *testing.T) {
	l, w := logtest.Open(t), newSaved("back")
	w.facts.Policy.Snapshots.Deadline = 30 * time.Second
	one := process(t, "one", l, w.world) // it takes none
	if _, err := one.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(-5 * time.Hour)
	two := process(t, "two", l, w.world)
	ended := make(chan error, 1)
	two.Snapshot = func(ctx context.Context, _ *remediator.Facts, _ remediator.Action) (remediator.SnapshotResult, error) {
		deadline, _ := ctx.Deadline()
		if left := time.Until(deadline); left > time.Minute {
			ended <- fmt.Errorf("it is taken for %s", left)
		}
		close(ended)
		return w.taken, nil
	}
	w.reconcileUntil(t, two, handedOver)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestALateSnapshotIsNotTheNextOne: what an attempt says that was given up is not taken for an answer about the one that follows, which
// would be taken a second time, into the same file.
func TestALateSnapshotIsNotTheNextOne(t *testing.T) {
	l, w := logtest.Open(t), newSaved("late")
	r := process(t, "one", l, w.world)
	late, first := make(chan error), true
	r.Snapshot = func(ctx context.Context, f *remediator.Facts, a remediator.Action) (remediator.SnapshotResult, error) {
		if first { // its store hangs, whatever the deadline is
			first = false
			w.begun <- a.Value
			return remediator.SnapshotResult{}, <-late
		}
		return w.snapshot(ctx, f, a)
	}
	r.Places = supervise.NewPlaces(2)
	taking := func(s remediator.State) bool { return s.Care.Snapshot.Active != nil }
	w.reconcileUntil(t, r, taking)
	<-w.begun
	w.now = w.now.Add(11 * time.Minute)
	w.reconcileUntil(t, r, func(s remediator.State) bool { return s.Care.Snapshot.Failures == 1 && !taking(s) })
	w.now = w.now.Add(2 * time.Minute)
	w.reconcileUntil(t, r, taking)
	<-w.begun
	late <- errors.New("the store hung")
	for range 200 {
		if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.begun) > 0 {
		t.Errorf("it was taken again: %s", <-w.begun)
	}
	w.end <- nil
	w.reconcileUntil(t, r, handedOver)
}
