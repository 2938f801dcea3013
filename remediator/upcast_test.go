package remediator_test

import (
	"encoding/json"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// TestEscalationEndedOfVersion1: what older logs say of the end of a step is told apart, and what they do not say is not invented.
func TestEscalationEndedOfVersion1(t *testing.T) {
	catalog := remediator.NewCatalog()
	for fields, want := range map[string]remediator.EscalationEnded{
		``:                              {},
		`,"failed":".status is Failed"`: {Outcome: remediator.StepFailed, Reason: ".status is Failed"},
		`,"cured":true`:                 {Outcome: remediator.StepRecovered},
	} {
		want.Machine, want.Step = remediator.Subject{Name: "m1", UID: "u1"}, "reboot"
		got, err := catalog.Decode(eventlog.Event{
			Type: "dev.scute.remediation.escalation-ended.v1",
			Data: json.RawMessage(`{"machine":{"name":"m1","uid":"u1"},"rung":"reboot"` + fields + `}`),
		})
		if err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", fields, got, err, want)
		}
	}
}
