package runner_test

import (
	"slices"
	"testing"

	"scute.dev/eventlog/logtest"
	"scute.dev/remediator/runner"
)

// TestHistoryOfAPolicy checks that the history of a policy lists the remediations of all owners in its namespace,
// newest first, up to a limit.
func TestHistoryOfAPolicy(t *testing.T) {
	l, first, second := logtest.Open(t), newWorld("first"), newWorld("second")
	second.now = second.now.AddDate(0, 0, 1)
	for _, w := range []*world{first, second} {
		w.failNode(1)
		if err := runUntilDone(t, process(t, "one", l, w), l, w); err != nil {
			t.Fatal(err)
		}
	}
	view := process(t, "two", l, first).View
	for _, r := range records(t, l, second.facts.Owner.Owner) {
		if err := view.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	list := view.History("fleet", "repair", 10)
	if len(list) != 2 || list[0].Cluster != "second" || list[1].Cluster != "first" || list[0].Machine != "m2" || list[0].Method != "RolloutSurge (relaxed)" || list[0].Outcome != "Succeeded" {
		t.Errorf("History = %+v", list)
	}
	if list := view.History("fleet", "repair", 1); len(list) != 1 || list[0].Cluster != "second" {
		t.Errorf("History with limit 1 = %+v", list)
	}
	for namespace, policy := range map[string]string{"fleet": "other", "elsewhere": "repair"} {
		if list := view.History(namespace, policy, 10); len(list) > 0 {
			t.Errorf("History of %s/%s = %+v, want none", namespace, policy, list)
		}
	}
}

// TestWhatACommitConcerns checks that a change names the author of the commit, and the unhealthy machines and their
// policies before and after it.
func TestWhatACommitConcerns(t *testing.T) {
	l, w := logtest.Open(t), newWorld("concerned")
	w.failNode(1)
	if err := runUntilDone(t, process(t, "one", l, w), l, w); err != nil {
		t.Fatal(err)
	}
	view, changes := runner.NewRemediations(), []runner.Change(nil)
	view.Changed = func(c runner.Change) { changes = append(changes, c) }
	for _, r := range records(t, l, w.facts.Owner.Owner) {
		if err := view.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range changes {
		if c.Owner != w.facts.Owner.Owner || c.Actor != runner.Actor("one") || !slices.Equal(slices.Compact(c.Machines), []string{"m2"}) || i > 0 && !slices.Contains(c.Policies, "repair") {
			t.Errorf("change %d = %+v", i, c)
		}
	}
	if len(changes) < 5 {
		t.Errorf("got %d changes", len(changes))
	}
}
