package runner_test

import (
	"fmt"
	"testing"

	"scute.dev/eventlog/logtest"
	"scute.dev/internal/earlier"
)

// TestRemediationsOfAnEarlierVersion checks that this version completes remediations that an earlier version left,
// after each of their turns.
func TestRemediationsOfAnEarlierVersion(t *testing.T) {
	l := earlier.Open(t, "../..")
	for n := 1; ; n++ {
		w := worldAfter(t, n)
		s := stateOf(t, l, w.facts.Owner.Owner)
		if s.Active == nil && len(s.History) > 0 {
			if n < 4 {
				t.Errorf("the log has only %d unfinished remediations", n-1)
			}
			return
		}
		if err := drive(t, process(t, "this", l, w), l, w); err != nil {
			t.Fatalf("after %d turns: %v", n, err)
		}
		w.replaced(t, "m2")
	}
}

// worldAfter returns the world of a remediation after the given number of turns.
func worldAfter(t *testing.T, turns int) *world {
	t.Helper()
	name := fmt.Sprintf("turn-%02d", turns)
	w, l := newWorld(name), logtest.Open(t)
	w.facts.Owner.Namespace = name
	w.failNode(1)
	r := process(t, "dead", l, w)
	for range turns {
		if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
		w.owner()
	}
	return w
}
