package runner_test

import (
	"testing"
	"time"

	"scute.dev/eventlog/logtest"
)

// TestSurveysKeepTheirPace: all machines are healthy, and the policy has etcd asked every hour. A process that starts asks within the
// first hour, and not at once. What did not change is recorded once. A cluster that does not answer is not asked more often.
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
			t.Errorf("asked %d times instead of %d, and looks again in %s", w.asked-before, asked, again)
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
		w.away = !w.away
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); s.Etcd == nil || len(s.Etcd.Problems) > 0 {
		t.Errorf("the log has %+v", s.Etcd)
	}
	if recorder.appends != 1 {
		t.Errorf("%d appends of what did not change", recorder.appends)
	}
	other := newWorld("another")
	other.facts.Policy.Survey = time.Hour
	if again, err := process(t, "two", l, other).Reconcile(t.Context(), other.facts.Owner.Owner); err != nil || again == first {
		t.Errorf("two control planes are asked at the same time: %s %v", again, err)
	}
}
