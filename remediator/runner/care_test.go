package runner_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

// fragmented is a world whose etcd members, the first of which leads, have databases with much free space.
type fragmented struct {
	*world
	sizes    map[string]int64
	done     []string // the members that were defragmented
	fails    error
	timeouts map[remediator.ActionType]time.Duration // the timeout of each type of action
}

func newFragmented(name string) *fragmented {
	w := &fragmented{world: newWorld(name), timeouts: make(map[remediator.ActionType]time.Duration), sizes: map[string]int64{"m1": 400 << 20, "m2": 400 << 20, "m3": 400 << 20}}
	w.facts.Policy.Survey = time.Minute
	w.facts.Policy.Defragmentation = remediator.Defragmentation{Enabled: true, FreePercent: 45, MinSize: 100 << 20, Pause: 10 * time.Minute, Deadline: time.Minute}
	return w
}

func (w *fragmented) Probe(ctx context.Context, seen *remediator.Facts) (*remediator.Facts, error) {
	f, err := w.world.Probe(ctx, seen)
	for i := range f.Etcd.Members {
		m := &f.Etcd.Members[i]
		m.Size, m.InUse, m.Leader = w.sizes[m.Node], 50<<20, i == 0
	}
	return f, err
}

func (w *fragmented) Perform(ctx context.Context, f *remediator.Facts, a remediator.Action) error {
	if until, ok := ctx.Deadline(); ok {
		w.timeouts[a.Type] = time.Until(until)
	}
	if a.Type != remediator.Defragment {
		return w.world.Perform(ctx, f, a)
	}
	if w.done = append(w.done, a.Value); w.fails == nil {
		w.sizes[a.Value] = 50 << 20
	}
	return w.fails
}

func (w *fragmented) process(t *testing.T, name string, l aggregate.Log) *runner.Runner {
	t.Helper()
	r := process(t, name, l, w.world)
	r.Observer, r.Executor = w, w
	return r
}

func (w *fragmented) reconcile(t *testing.T, r *runner.Runner) {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Minute)
}

// TestDefragmentationIsPaced checks that members are defragmented once each, one after the other and the leader last,
// with the policy's pause between them.
func TestDefragmentationIsPaced(t *testing.T) {
	l, w := logtest.Open(t), newFragmented("paced")
	r := w.process(t, "one", l)
	for minute := range 60 {
		w.reconcile(t, r)
		if most := 1 + minute/10; len(w.done) > most {
			t.Fatalf("%d members were defragmented after %d minutes", len(w.done), minute)
		}
	}
	if len(w.done) != 3 || w.done[0] != "m2" || w.done[1] != "m3" || w.done[2] != "m1" {
		t.Errorf("defragmented %v, want m2, m3 and m1", w.done)
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); s.Maintenance.Active.Node != "" || len(s.Maintenance.Done) == 0 {
		t.Errorf("care = %+v", s.Maintenance)
	}
}

// TestADefragmentationHasItsOwnTime checks that a defragmentation may take longer than a turn, up to the policy's
// deadline, while other writes may not.
func TestADefragmentationHasItsOwnTime(t *testing.T) {
	l, w := logtest.Open(t), newFragmented("large")
	w.facts.Policy.Defragmentation.Deadline = 5 * time.Minute
	w.facts.Machines[0].DeleteAnnotation = remediator.DeleteValue // left by an earlier remediation
	r := w.process(t, "one", l)
	for range 3 {
		w.reconcile(t, r)
	}
	if given := w.timeouts[remediator.Defragment]; given <= 3*time.Minute || given > 5*time.Minute {
		t.Errorf("timeout of a defragmentation = %s", given)
	}
	if given := w.timeouts[remediator.SetDelete]; given <= 0 || given > time.Minute {
		t.Errorf("timeout of another write = %s", given)
	}
}

// fragmentedFleet maps the names of clusters to their worlds.
type fragmentedFleet map[string]*fragmented

func (m fragmentedFleet) Observe(ctx context.Context, owner remediator.Owner, made remediator.CreatedObjects) (*remediator.Facts, error) {
	return m[owner.Cluster].Observe(ctx, owner, made)
}

func (m fragmentedFleet) Probe(ctx context.Context, f *remediator.Facts) (*remediator.Facts, error) {
	return m[f.Owner.Cluster].Probe(ctx, f)
}

func (m fragmentedFleet) Perform(ctx context.Context, f *remediator.Facts, a remediator.Action) error {
	return m[f.Owner.Cluster].Perform(ctx, f, a)
}

// TestOneDefragmentationInTheFleet checks that a defragmentation waits while a member of another control plane is
// defragmented, also in another process, but no longer than its deadline.
func TestOneDefragmentationInTheFleet(t *testing.T) {
	l, one, two := logtest.Open(t), newFragmented("one"), newFragmented("two")
	one.fails = errors.New("the connection broke")
	fleet := fragmentedFleet{"one": one, "two": two}
	now := one.now
	start := func(name string) *runner.Runner {
		r := process(t, name, l, one.world)
		for _, w := range fleet {
			for _, stored := range records(t, l, w.facts.Owner.Owner) {
				if err := r.View.Apply(stored); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.Observer, r.Executor, r.Now = fleet, fleet, func() time.Time { return now }
		return r
	}
	r := start("a")
	reconcile := func(w *fragmented) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
	}
	reconcile(one)
	reconcile(two)
	now = now.Add(time.Minute) // each owner is asked for the first time by then
	for range 3 {
		reconcile(one)
		reconcile(two)
	}
	r = start("b")
	reconcile(two)
	now = now.Add(59 * time.Second)
	if reconcile(two); len(one.done) != 1 || len(two.done) != 0 {
		t.Fatalf("defragmented %v of the first and %v of the second, want 1 and none", one.done, two.done)
	}
	now = now.Add(time.Minute)
	if reconcile(two); len(two.done) != 1 {
		t.Errorf("defragmented %v of the second, want 1", two.done)
	}
}

// TestDefragmentationOutlivesTheProcess checks that after a process died that recorded a defragmentation, the next
// process performs it, or records that it failed if the deadline has passed.
func TestDefragmentationOutlivesTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		after   time.Duration
		outcome remediator.DefragmentationOutcome
		done    int
	}{
		"in time": {10 * time.Second, remediator.DefragmentationDone, 1},
		"late":    {5 * time.Minute, remediator.DefragmentationFailed, 0},
		// The timeout is a minute, not the time until a deadline that is hours ahead.
		"after the clock was set back": {-5 * time.Hour, remediator.DefragmentationDone, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, w := logtest.Open(t), newFragmented("dies")
			owner := w.facts.Owner.Owner
			began := &aggregate.Root[remediator.Event, *remediator.State]{
				Log: l, Catalog: remediator.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: owner.ID()},
				Actor: "daemon/one", Now: func() time.Time { return w.now }, State: new(remediator.State),
			}
			if err := began.Append(t.Context(), remediator.Registered{Owner: owner}, remediator.Claimed{Holder: "one"}, remediator.DefragmentationStarted{
				Node: "m2", Before: remediator.Database{Node: "m2", Size: 400 << 20, InUse: 50 << 20}, Until: w.now.Add(time.Minute),
			}); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(c.after)
			r := w.process(t, "two", l)
			w.reconcile(t, r)
			w.now = w.now.Add(-50 * time.Second)
			if len(w.done) != c.done {
				t.Fatalf("defragmented %v", w.done)
			}
			if given := w.timeouts[remediator.Defragment]; given > time.Minute {
				t.Errorf("timeout of the defragmentation = %s", given)
			}
			w.reconcile(t, r)
			if s := stateOf(t, l, owner); s.Maintenance.Active.Node != "" || s.Maintenance.Failed != (c.outcome == remediator.DefragmentationFailed) {
				t.Errorf("care = %+v", s.Maintenance)
			}
		})
	}
}

// TestDefragmentationsTakeTurns checks that control planes that wait for others are served in order, as soon as the
// others have finished and not at their next survey, even if each defragmentation fails.
func TestDefragmentationsTakeTurns(t *testing.T) {
	l, fleet := logtest.Open(t), make(fragmentedFleet)
	names := []string{"one", "two", "three"}
	wakes := make(map[string]time.Time)
	for _, name := range names {
		w := newFragmented(name)
		w.facts.Policy.Survey = 24 * time.Hour
		w.fails = errors.New("it did not answer in time")
		fleet[name], wakes[name] = w, w.now
	}
	r := process(t, "one", l, fleet["one"].world)
	now := fleet["one"].now
	r.Observer, r.Executor, r.Now = fleet, fleet, func() time.Time { return now }
	var order []string
	asks := make(map[string]int) // surveys of waiting control planes
	reconcile := func(name string) {
		t.Helper()
		w := fleet[name]
		before, asked := len(w.done), w.asked
		again, err := r.Reconcile(t.Context(), w.facts.Owner.Owner)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.done) > before {
			order = append(order, name)
		} else if !now.Before(w.now.Add(24*time.Hour)) && !slices.Contains(order, name) {
			asks[name] += w.asked - asked
		}
		wakes[name] = now.Add(again)
	}
	for _, name := range names {
		reconcile(name)
	}
	now = now.Add(24 * time.Hour) // each owner is asked for the first time by then
	for _, name := range names {
		reconcile(name)
		now = now.Add(time.Second)
	}
	for end := now.Add(4 * time.Minute); ; {
		next := slices.MinFunc([]string{"three", "two", "one"}, func(a, b string) int { return wakes[a].Compare(wakes[b]) })
		if wakes[next].After(end) {
			break
		}
		now = wakes[next]
		reconcile(next)
	}
	if !slices.Equal(order, names) {
		t.Errorf("defragmented %v", order)
	}
	if asks["two"] != 1 || asks["three"] != 1 {
		t.Errorf("surveys while waiting = %v, want 1 each", asks)
	}
}
