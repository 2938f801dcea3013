package remediation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
)

// TestAheadInARollout checks that the outlook adds the scale-up timeout while the owner rolls out, which only the
// objects show.
func TestAheadInARollout(t *testing.T) {
	for version, rollout := range map[string]bool{"v1.36.3": false, "v1.35.0": true} {
		o := withLog(unhealthyFleet())
		o.Machines[0].Spec.Version = version
		timeouts := observe.Policy(&o.Policies[0]).Timeouts
		want := now().Add(-40 * time.Second).Add(timeouts.Ready)
		if rollout {
			want = want.Add(timeouts.ScaleUp)
		}
		if m := machineNamed(t, o, "prod-control-plane-h2ttv"); !m.Remediation.Outlook.Until.Equal(want) {
			t.Errorf("rollout %t: Until = %s, want %s", rollout, m.Remediation.Outlook.Until, want)
		}
	}
}

// TestAheadOfTheWindowOfAFleet checks that the outlook counts remediations of other owners in the log.
func TestAheadOfTheWindowOfAFleet(t *testing.T) {
	o := withLog(unhealthyFleet())
	victim, elsewhere := remediator.Subject{Name: "prod-control-plane-h2ttv", UID: "prod-control-plane-h2ttv"}, remediator.Subject{Name: "x", UID: "x"}
	waits, other := &remediator.State{}, &remediator.State{}
	waits.Apply(remediator.MachineMarked{Machine: victim, State: remediator.Unhealthy}, now())
	waits.Apply(remediator.Decided{Machine: victim, Decision: remediator.Decision{Verdict: remediator.Wait, Rule: "fleet-window"}}, now())
	other.Apply(remediator.HandedOver{Machine: elsewhere, Attempt: 1}, now().Add(-10*time.Minute))
	o.States = map[types.UID]*remediator.State{victim.UID: waits, "other": other}
	until := func(limits *v1alpha1.RepairLimits) time.Time {
		o.Limits = limits
		return machineNamed(t, o, victim.Name).Remediation.Outlook.Until
	}
	if got, want := until(&v1alpha1.RepairLimits{Spec: v1alpha1.RepairLimitsSpec{PerWindow: 1}}), now().Add(50*time.Minute); !got.Equal(want) {
		t.Errorf("Until = %s, want %s", got, want)
	}
	if got := until(nil); !got.IsZero() {
		t.Errorf("Until = %s without limits, want no time", got)
	}
}
