package remediator_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/remediator"
)

// TestStarts checks that a policy's window counts each remediation that was started, regardless of machines that
// recovered by themselves, and that escalation steps and the replacement after them count once.
func TestStarts(t *testing.T) {
	var s remediator.State
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	apply := func(events ...remediator.Event) {
		for _, e := range events {
			now = now.Add(time.Second)
			s.Apply(e, now)
		}
	}
	started := func(want int) {
		t.Helper()
		if got := len(s.Starts); got != want {
			t.Errorf("got %d starts, want %d", got, want)
		}
	}
	machine := func(n int) remediator.Subject {
		return remediator.Subject{Name: fmt.Sprintf("m%d", n), UID: types.UID(fmt.Sprintf("m%d-uid", n))}
	}
	marked := func(m remediator.Subject) remediator.Event {
		return remediator.MachineMarked{Machine: m, State: remediator.Unhealthy, Reason: "r", Source: remediator.FromPolicy, Since: now}
	}
	m := machine(0)
	apply(marked(m), remediator.EscalationStarted{Machine: m, Step: "reboot"})
	started(1)
	apply(remediator.EscalationEnded{Machine: m, Step: "reboot"}, remediator.EscalationStarted{Machine: m, Step: "power"}, remediator.EscalationEnded{Machine: m, Step: "power"})
	apply(remediator.HandedOver{Machine: m, Attempt: 1})
	started(1)
	apply(remediator.CancelStarted{Cause: remediator.TimedOut}, remediator.Cancelled{Cause: remediator.TimedOut}, remediator.HandedOver{Machine: m, Attempt: 2})
	started(2)
	apply(remediator.VictimGone{}, remediator.Succeeded{})
	for n := range 50 {
		apply(marked(machine(n+1)), remediator.MachineMarkCleared{Machine: machine(n + 1), Cause: remediator.Recovered})
	}
	started(2)
}
