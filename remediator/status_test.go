package remediator_test

import (
	"testing"
	"time"

	"scute.dev/remediator"
)

// TestStatusTellsWhatOperatorsAskedFor checks that the status shows the holds and aborts in the log, also while another
// rule decides.
func TestStatusTellsWhatOperatorsAskedFor(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	m := remediator.Subject{Name: "m2", UID: "m2"}
	var s remediator.State
	for _, c := range []struct {
		event         remediator.Event
		held, aborted bool
	}{
		{remediator.MachineMarked{Machine: m, State: remediator.Unhealthy, Reason: "x"}, false, false},
		{remediator.HoldSet{Machine: m, Until: at, Reason: "disk"}, true, false},
		{remediator.SurgeRequested{Machine: m, Method: remediator.Surge}, true, false},
		{remediator.AbortRequested{Machine: m}, true, true},
		{remediator.HoldReleased{Machine: m}, false, false},
	} {
		s.Apply(c.event, at)
		status, ok := remediator.Status(&s, m.UID)
		if !ok || (status.Hold != nil) != c.held || status.Aborted != c.aborted {
			t.Errorf("after %T: status = %+v", c.event, status)
		}
		if status.Hold != nil && (!status.Hold.Until.Time.Equal(at) || status.Hold.Reason != "disk") {
			t.Errorf("hold = %+v, want until 8:00 for disk", status.Hold)
		}
	}
}
