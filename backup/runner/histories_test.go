package runner

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"scute.dev/aggregate"
	"scute.dev/backup/schedule"
	"scute.dev/eventlog"
)

// concurrentReads counts the commits that are read, and the concurrent reads of whole histories.
type concurrentReads struct {
	aggregate.Log
	commits int

	mu        sync.Mutex
	now, peak int
}

func (l *concurrentReads) Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error) {
	l.mu.Lock()
	if after == 0 {
		l.now++
		l.peak = max(l.peak, l.now)
	}
	l.mu.Unlock()
	records, err := l.Log.Read(ctx, a, after)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.commits += len(records); after == 0 {
		l.now--
	}
	return records, err
}

// TestHistoryIsReadOnce checks that a backup reads only the commits since the previous backup, rather than the whole
// history.
func TestHistoryIsReadOnce(t *testing.T) {
	w := newFixture(t)
	root := w.root(id, "daemon/earlier")
	if err := root.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		for _, e := range []schedule.Event{
			schedule.Started{ID: fmt.Sprint(i), Path: "p", Due: w.now},
			schedule.Completed{Backup: schedule.Backup{ID: fmt.Sprint(i), Path: "p", TakenAt: w.now}},
			schedule.RemovalStarted{Backups: []string{fmt.Sprint(i)}},
			schedule.Removed{Backups: []schedule.Backup{{ID: fmt.Sprint(i), Path: "p"}}},
		} {
			if err := root.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	log := &concurrentReads{Log: w.log}
	w.Log = log
	w.makeUnreachable() // the attempts fail, which is enough for this test
	for i := range 3 {
		w.record(schedule.Requested{Value: fmt.Sprint(i)})
		w.now = w.now.Add(24 * time.Hour)
		log.commits = 0
		w.drive()
	}
	if log.commits > 5 {
		t.Errorf("the third backup read %d commits, want at most 5", log.commits)
	}
	cached := func() (n int) {
		w.histories.roots.Range(func(any, any) bool { n++; return true })
		return n
	}
	if s := w.state(); s.Failures != 3 || cached() != 1 {
		t.Errorf("%d failures, %d cached schedules", s.Failures, cached())
	}
	if err := w.End(t.Context(), id, "test", "gone"); err != nil {
		t.Fatal(err)
	}
	if w.drive(); cached() > 0 {
		t.Error("a schedule that ended is still cached")
	}
}

// TestOneHistoryAtATime checks that schedules that start at the same time read their histories one after the other, to
// limit memory.
func TestOneHistoryAtATime(t *testing.T) {
	w := newFixture(t)
	log := &concurrentReads{Log: w.log}
	w.Log = log
	w.makeUnreachable()
	spec := w.state().Spec
	var wg sync.WaitGroup
	for i := range 20 {
		name := fmt.Sprintf("fleet/nightly/%08d", i)
		if err := w.Configure(t.Context(), name, "test", spec, "now"); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := w.Drive(t.Context(), name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if log.peak != 1 {
		t.Errorf("%d histories were read at once, want 1", log.peak)
	}
}
