package remediator_test

import (
	"testing"
	"time"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestJudge checks statuses that a MachineHealthCheck cannot express. The tests in test/healthcheck compare the others
// with a MachineHealthCheck.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	checks := remediator.Checks{
		NodeStartup: 10 * time.Minute,
		Node: []remediator.Check{
			{Type: "Ready", Status: object.False, Timeout: time.Hour}, {Type: "Ready", Status: object.Unknown, Timeout: 5 * time.Minute},
		},
	}
	for _, c := range []struct {
		name, reason string
		status       object.ConditionStatus
		checks       remediator.Checks
		want         remediator.MarkState
	}{
		{"the Node says nothing", "NodeReadyUnknown", object.Unknown, checks, remediator.Unhealthy},
		{"no connection", "ConnectionDown", object.Unknown, checks, ""},
		{"not inspected", "InspectionFailed", object.Unknown, checks, ""},
		{"an error of the look", "InternalError", object.Unknown, checks, ""},
		{"the Node was deleted", "NodeDeleted", object.False, checks, remediator.Unhealthy},
		{"not ready for a while", "NodeNotReady", object.False, checks, remediator.Failing},
		{"nothing is checked", "NodeDeleted", object.False, remediator.Checks{}, ""},
	} {
		m := &remediator.Machine{Name: "m", Node: "n", Created: now.Add(-48 * time.Hour), Conditions: map[string]remediator.Condition{
			"NodeReady": {Status: c.status, Reason: c.reason, Since: now.Add(-6 * time.Minute)},
		}}
		if h := remediator.Judge(m, remediator.MachineMarked{}, c.checks, now); h.State != c.want {
			t.Errorf("%s: Judge = %+v, want %q", c.name, h, c.want)
		}
	}
}

// TestFailingLooksBackBriefly checks that the time of a failing condition counts from its earlier failure with another
// status, but only within the check's timeout, because nothing may have observed the condition in between.
func TestFailingLooksBackBriefly(t *testing.T) {
	now := time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		reason string
		ago    time.Duration
		want   remediator.MarkState
	}{
		"another status, four minutes ago": {"Node Ready Unknown", 4 * time.Minute, remediator.Unhealthy},
		"a day ago":                        {"Node Ready False", 24 * time.Hour, remediator.Failing},
		"another condition":                {"Node ReadyForWork False", 4 * time.Minute, remediator.Failing},
	} {
		t.Run(name, func(t *testing.T) {
			mark := remediator.MachineMarked{State: remediator.Failing, Reason: c.reason, Source: remediator.FromPolicy, Since: now.Add(-c.ago)}
			m := &remediator.Machine{Name: "m1", UID: "m1", Node: "n1", Conditions: map[string]remediator.Condition{"NodeReady": {Status: object.False, Since: now.Add(-time.Minute)}}}
			checks := remediator.Checks{Node: []remediator.Check{{Type: "Ready", Status: object.False, Timeout: 4 * time.Minute}}}
			if h := remediator.Judge(m, mark, checks, now); h.State != c.want {
				t.Errorf("Judge = %+v", h)
			}
		})
	}
}
