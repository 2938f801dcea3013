package remediator_test

import (
	"testing"
	"time"

	"scute.dev/remediator"
)

// TestTriggersAreLookedFor checks that a rollout trigger on an infrastructure machine, which costs a request to read,
// is read as long as it may have to be reverted, even if the machine has recovered and its annotations were never
// written.
func TestTriggersAreLookedFor(t *testing.T) {
	m := remediator.Subject{Name: "m1", UID: "1"}
	s := &remediator.State{}
	for _, e := range []remediator.Event{
		remediator.MachineMarked{Machine: m, State: remediator.Unhealthy},
		remediator.SurgeRequested{Machine: m, Method: remediator.RolloutSurge, Attempt: 1, Trigger: remediator.TriggerClonedFrom, TriggerValue: "away", Original: "template"},
		remediator.MachineMarkCleared{Machine: m, Cause: remediator.Recovered},
		remediator.CancelStarted{Cause: remediator.Recovered},
	} {
		s.Apply(e, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	}
	if _, looked := remediator.StepObjects(s)[m.UID]; !looked {
		t.Error("StepObjects does not include the machine with the trigger")
	}
	s.Apply(remediator.Cancelled{Cause: remediator.Recovered}, time.Date(2026, 5, 1, 12, 1, 0, 0, time.UTC))
	if len(remediator.StepObjects(s)) > 0 {
		t.Error("StepObjects includes a machine although no remediation is in progress")
	}
}
