package workflow

import (
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
)

// TestDueAtTheVeryTime: a run that waits for a decision is due when the time for it is up, and not a moment before or after: nothing else wakes
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
	decide(ActAsks{Task: "a", Attempt: 1, Message: "may it?"})
	at := NextAt(s)
	if CurrentPhase(s) != v1alpha1.RunPaused || !at.Equal(now.Add(time.Hour)) {
		t.Fatalf("%s until %s", CurrentPhase(s), at)
	}
	if Due(s, at.Add(-1)) || !Due(s, at) {
		t.Errorf("due a moment before: %t; at the time: %t", Due(s, at.Add(-1)), Due(s, at))
	}
	now = at
	if decide(Tick{Parallel: 1}); CurrentPhase(s) == v1alpha1.RunPaused {
		t.Error("nothing follows at that time")
	}
}
