package workflow

import (
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
)

// TestDueAtTheVeryTime checks that a run that waits for a decision is due exactly at its timeout: nothing else wakes
// its driver.
func TestDueAtTheVeryTime(t *testing.T) {
	s, now := new(State), time.Unix(1000, 0)
	decide := func(in Input) {
		t.Helper()
		events, err := Decide(s, in, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			s.Apply(e, now)
		}
	}
	for _, e := range Start(&Definition{Tasks: []Task{{Name: "a", Stage: StageMain, Steps: []Step{{Kind: "Do", Timeout: Duration(time.Hour)}}}}}, "", now) {
		s.Apply(e, now)
	}
	s.Apply(Claimed{Holder: "one"}, now)
	decide(Tick{Parallel: 1})
	decide(ActAwaitsOperator{Task: "a", Attempt: 1, Message: "may it?"})
	at := NextAt(s)
	if CurrentPhase(s) != v1alpha1.RunPaused || !at.Equal(now.Add(time.Hour)) {
		t.Fatalf("phase = %s, next at %s", CurrentPhase(s), at)
	}
	if Due(s, at.Add(-1)) || !Due(s, at) {
		t.Errorf("Due before the timeout = %t, at the timeout = %t, want false and true", Due(s, at.Add(-1)), Due(s, at))
	}
	now = at
	if decide(Tick{Parallel: 1}); CurrentPhase(s) == v1alpha1.RunPaused {
		t.Error("no event follows at the timeout")
	}
}
