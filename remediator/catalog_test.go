package remediator_test

import (
	"encoding/json"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// TestEscalationEndedOfVersion1 checks that the upcaster distinguishes the outcomes that version 1 of the event
// recorded, and leaves the outcome empty if it recorded none.
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
			t.Errorf("%s: Decode = %+v, %v, want %+v", fields, got, err, want)
		}
	}
}
