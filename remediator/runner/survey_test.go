package runner_test

import (
	"testing"
	"time"

	"scute.dev/eventlog/logtest"
)

// TestSurveysKeepTheirPace checks that etcd of healthy machines is asked once per interval of the policy, that a
// process that starts asks within the first interval but not at once, that an unchanged result is recorded once, and
// that a cluster that does not answer is not asked more often.
func TestSurveysKeepTheirPace(t *testing.T) {
	l, w := logtest.Open(t), newWorld("survey")
	w.facts.Policy.Survey = time.Hour
	recorder := &counting{Log: l}
	r := process(t, "one", recorder, w)
	turn := func(asked int) (again time.Duration) {
		t.Helper()
		before := w.asked
		again, err := r.Reconcile(t.Context(), w.facts.Owner.Owner)
		if err != nil {
			t.Fatal(err)
		}
		if w.asked-before != asked || again <= 0 || again > time.Hour {
			t.Errorf("etcd was asked %d times, want %d; next turn in %s", w.asked-before, asked, again)
		}
		return again
	}
	first := turn(0)
	turn(0)
	w.now = w.now.Add(first)
	turn(1)
	w.now = w.now.Add(59 * time.Minute)
	turn(0)
	for range 3 {
		w.now = w.now.Add(time.Hour)
		turn(1)
		turn(0)
		w.unreachable = !w.unreachable
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); s.Etcd.At.IsZero() || len(s.Etcd.Problems) > 0 {
		t.Errorf("recorded etcd = %+v", s.Etcd)
	}
	if recorder.appends != 1 {
		t.Errorf("got %d appends, want 1", recorder.appends)
	}
	other := newWorld("another")
	other.facts.Policy.Survey = time.Hour
	if again, err := process(t, "two", l, other).Reconcile(t.Context(), other.facts.Owner.Owner); err != nil || again == first {
		t.Errorf("two control planes are asked at the same time: next turn in %s, error %v", again, err)
	}
}
