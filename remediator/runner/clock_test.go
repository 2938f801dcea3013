package runner_test

import (
	"testing"
	"time"

	"scute.dev/eventlog/logtest"
	"scute.dev/remediator"
)

// TestTheWindowOfAnotherOwnerWhenTheClockIsSetBack checks that after the clock is set back, a remediation of an owner
// without turns counts no longer than the window. For a process that starts later, the window begins when it reads the
// log, which it does again before it starts its first remediation.
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
				t.Fatalf("restarted %t: does not wait for the window: %+v", restarted, s.Unhealthy["m1"].Decision)
			}
			fleet.worlds[0].now, waits.now = fleet.worlds[0].now.Add(31*time.Minute), waits.now.Add(31*time.Minute)
		}
		if inOrder(t, p, fleet.worlds[1:]); stateOf(t, l, waits.facts.Owner.Owner).Active == nil {
			t.Errorf("restarted %t: waits longer than the window", restarted)
		}
	}
}

// TestNoAnswerFromBeforeTheClockWasSetBack checks that an answer of etcd from before the clock was set back is not
// reused during a surge, and that an unreachable cluster is reported after some seconds.
func TestNoAnswerFromBeforeTheClockWasSetBack(t *testing.T) {
	l, w := logtest.Open(t), newWorld("set-back")
	w.failNode(0)
	p := process(t, "one", l, w)
	for _, step := range []time.Duration{0, -5 * time.Hour, 11 * time.Second} {
		w.now, w.unreachable = w.now.Add(step), step != 0
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
		t.Errorf("remediation is not frozen: %+v", s.Active)
	}
}
