package runner_test

import (
	"fmt"
	"os"
	"testing"

	"scute.dev/eventlog/logtest"
)

// TestRecord leaves the remediation of a machine after each of its turns, and one that is over.
func TestRecord(t *testing.T) {
	l := logtest.OpenIn(t, os.Getenv("RECORD"))
	for n, over := 1, false; !over; n++ {
		name := fmt.Sprintf("turn-%02d", n)
		w := newWorld(name)
		w.facts.Owner.Namespace = name // the limits of a policy are those of a namespace
		w.failNode(1)
		r := process(t, "earlier", l, w)
		for range n {
			if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Fatal(err)
			}
			w.owner()
		}
		s := stateOf(t, l, w.facts.Owner.Owner)
		over = len(s.History) > 0 && s.Active == nil
	}
}
