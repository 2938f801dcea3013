package transfer

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"scute.dev/mover"
	"scute.dev/mover/archive"
)

// toRestore prepares a restore of Cluster a on the fakes' target, which has nothing of it.
func toRestore(t *testing.T) (*fakes, *archive.Archive, func() *Restore) {
	t.Helper()
	f, a, err := backedUp(t, func(*fakes, int) {})
	if err != nil {
		t.Fatal(err)
	}
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	return f, a, func() *Restore {
		return &Restore{Target: f.dst.cluster(t, "target"), Archive: a, SourceIsGone: true}
	}
}

func refusedFor(err error, says string) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && slices.ContainsFunc(refused.Findings, func(one mover.Finding) bool { return strings.Contains(one.Message, says) })
}

// Of two processes on one restore, the one that came first stops at its next write to the record.
func TestARestoreIsTakenOver(t *testing.T) {
	f, _, process := toRestore(t)
	first, second := process(), process()
	for _, r := range []*Restore{first, second} {
		if _, err := r.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.dst.hook = func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/machines") {
			f.dst.hook = nil
			if err := second.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if err := first.Run(t.Context()); err == nil {
		t.Errorf("the first process: %v", err)
	}
	f.there(f.dst, f.cluster)
	f.there(f.dst, f.machine)
	f.isPaused(f.dst, f.cluster, false)
	if marks := f.dst.get(f.machine).GetAnnotations(); len(marks) > 0 {
		t.Errorf("left on the Machine: %v", marks)
	}
}

// A restore that has ended is not done once more, and not at all where a Cluster of it is gone.
func TestARestoreThatHasEnded(t *testing.T) {
	f, _, process := toRestore(t)
	for range 2 {
		r := process()
		if _, err := r.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.dst.drop(f.machine) // as its owner does when it is scaled down
	}
	if f.dst.get(f.machine) != nil {
		t.Error("a Machine that was deleted after the restore was made again")
	}
	f.dst.drop(f.cluster)
	if _, err := process().Prepare(t.Context()); !refusedFor(err, "not there any more") {
		t.Errorf("the Cluster is gone: %v", err)
	}
}

// Nobody but a human can know that a management cluster which does not answer is gone.
func TestARestoreAsksForTheSource(t *testing.T) {
	f, a, process := toRestore(t)
	r := process()
	r.SourceIsGone = false
	if _, err := r.Prepare(t.Context()); !refusedFor(err, "is not known") {
		t.Errorf("nothing was said: %v", err)
	}
	r = process()
	r.SourceIsGone, r.Source = false, f.src.cluster(t, "source")
	f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
	if _, err := r.Prepare(t.Context()); !refusedFor(err, "still runs there") {
		t.Errorf("the source is active: %v", err)
	}
	f.src.merge(f.cluster, obj{"spec": obj{"paused": true}})
	if _, err := r.Prepare(t.Context()); err != nil {
		t.Errorf("the source is paused: %v", err)
	}
	// It is resumed while the objects are made: they stay paused.
	f.dst.hook = func(q *http.Request) {
		if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/machines") {
			f.dst.hook = nil
			f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
		}
	}
	if err := r.Run(t.Context()); !refusedFor(err, "still runs there") {
		t.Errorf("the source was resumed meanwhile: %v", err)
	}
	f.isPaused(f.dst, f.cluster, true)
	if a.Index.Source.Cluster == "" {
		t.Error("the backup does not say where it is from")
	}
}

// A name that is taken on the target is never overwritten.
func TestARestoreOntoATakenName(t *testing.T) {
	f, _, process := toRestore(t)
	f.dst.put(f.cluster, obj{"spec": obj{"paused": true}})
	uid := f.dst.get(f.cluster).GetUID()
	if _, err := process().Prepare(t.Context()); !refusedFor(err, "an object of this name is there") {
		t.Errorf("%v", err)
	}
	if f.dst.get(f.cluster).GetUID() != uid || f.dst.get(f.machine) != nil {
		t.Error("the target was changed")
	}
}
