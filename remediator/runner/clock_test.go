package runner_test

import (
	"testing"
	"time"

	"scute.dev/eventlog/logtest"
	"scute.dev/remediator"
)

// TestTheWindowOfAnotherOwnerWhenTheClockIsSetBack: what an owner without a turn has begun counts no longer than the window; for a process
// that starts after that, from when it read the log, which it does again before it begins something for the first time.
func TestTheWindowOfAnotherOwnerWhenTheClockIsSetBack(t *testing.T) {
	for restarted, windows := range map[bool]int{false: 1, true: 2} {
		l, fleet := logtest.Open(t), namespaces(2, remediator.FleetLimits{})
		for _, w := range fleet.worlds {
			w.facts.Owner.Namespace, w.facts.Policy.Limits.PerWindow = "fleet", 1
		}
		fleet.count()
		p, waits := fleet.process(t, "one", l), fleet.worlds[1]
		inOrder(t, p, fleet.worlds)
		for _, w := range fleet.worlds {
			w.now = w.now.Add(-5 * time.Hour)
		}
		if restarted {
			p = fleet.process(t, "two", l)
		}
		for range 2 * windows {
			inOrder(t, p, fleet.worlds[1:])
			if s := stateOf(t, l, waits.facts.Owner.Owner); s.Active != nil || s.Unhealthy["m1"].Decision.Rule != "window" {
				t.Fatalf("restarted %t: it does not wait: %+v", restarted, s.Unhealthy["m1"].Decision)
			}
			fleet.worlds[0].now, waits.now = fleet.worlds[0].now.Add(31*time.Minute), waits.now.Add(31*time.Minute)
		}
		if inOrder(t, p, fleet.worlds[1:]); stateOf(t, l, waits.facts.Owner.Owner).Active == nil {
			t.Errorf("restarted %t: it waits for longer than the window", restarted)
		}
	}
}

// TestNoAnswerFromBeforeTheClockWasSetBack: while an owner is surging, an answer of etcd that is some seconds old will do. One from before
// the clock was set back does not, and a cluster that is not seen is told of after some seconds.
func TestNoAnswerFromBeforeTheClockWasSetBack(t *testing.T) {
	l, w := logtest.Open(t), newWorld("set-back")
	w.failNode(0)
	p := process(t, "one", l, w)
	for _, step := range []time.Duration{0, -5 * time.Hour, 11 * time.Second} {
		w.now, w.away = w.now.Add(step), step != 0
		if _, err := p.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
	}
	w.now = w.now.Add(-5 * time.Hour)
	for range 2 {
		if _, err := p.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(11 * time.Second)
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); s.Active == nil || s.Active.Frozen != "quorum" {
		t.Errorf("it is not frozen: %+v", s.Active)
	}
}
