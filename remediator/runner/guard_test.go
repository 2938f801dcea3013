package runner_test

import (
	"context"
	"testing"
	"time"

	"scute.dev/eventlog/logtest"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// flaky is a world with an etcd member that answers every other time.
type flaky struct {
	*world
	n int
}

func (w *flaky) Probe(ctx context.Context, seen *remediator.Facts) (*remediator.Facts, error) {
	f, err := w.world.Probe(ctx, seen)
	if w.n++; w.n%2 == 0 {
		f.Etcd.Members[2].Answers = object.False
	}
	return f, err
}

// TestGuardSettles checks that the turns end if an etcd member answers only now and then, although each written
// annotation triggers another turn.
func TestGuardSettles(t *testing.T) {
	for what, change := range map[string]func(*world){
		"a deletion hangs":           func(w *world) { w.facts.Machines[0].Deleting = true },
		"an unhealthy machine waits": func(w *world) { w.facts.Policy.Hold = 24 * time.Hour; w.failNode(0) },
	} {
		l, w := logtest.Open(t), &flaky{world: newWorld("flaky")}
		w.facts.Policy.GuardsMachines = true
		change(w.world)
		p := process(t, "one", l, w.world)
		p.Observer, p.Executor = w, w
		writes, turns := 0, 0
		w.before = func(remediator.Action) error { writes++; return nil }
		for before := -1; writes != before && turns < 100; turns++ {
			before = writes
			if _, err := p.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Fatal(err)
			}
		}
		if turns > 5 {
			t.Errorf("%s: %d turns in the same second, %d requests to etcd, %d writes", what, turns, w.n, writes)
		}
	}
}

// TestGuardAsksLittle checks that the guard rarely asks etcd if the cluster is unreachable, paused or being deleted.
func TestGuardAsksLittle(t *testing.T) {
	for what, change := range map[string]func(*world){
		"unreachable": func(w *world) { w.unreachable = true },
		"paused":      func(w *world) { w.facts.Cluster.Paused = true; w.facts.Machines[0].Deleting = true },
		"deleted":     func(w *world) { w.facts.Cluster.Deleting = true; w.facts.Machines[0].Deleting = true },
	} {
		l, w := logtest.Open(t), newWorld("little")
		w.facts.Policy.GuardsMachines = true
		change(w)
		p := process(t, "one", l, w)
		for range 120 { // an hour
			if _, err := p.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(30 * time.Second)
		}
		if w.asked > 7 {
			t.Errorf("%s: etcd was asked %d times in an hour, want at most 7", what, w.asked)
		}
	}
}

// TestGuardOfAnOwnerThatIsGone checks that the annotation is removed from the machines of an owner before the owner is
// forgotten.
func TestGuardOfAnOwnerThatIsGone(t *testing.T) {
	l, w := logtest.Open(t), newWorld("gone")
	w.facts.Policy.GuardsMachines = true
	w.facts.Owner.Found = false
	w.facts.Machines[0].Needed = "it was"
	p := process(t, "one", l, w)
	for range 2 {
		if _, err := p.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
	}
	if why := w.facts.Machines[0].Needed; why != "" {
		t.Errorf("annotation = %s, want none", why)
	}
}
