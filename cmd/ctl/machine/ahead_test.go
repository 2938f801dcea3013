package machine

import (
	"testing"
	"time"

	"scute.dev/remediator/observe"
)

// TestAheadInARollout: while the owner rolls out, its new machine has more time to become ready. That is seen in the objects, not in the log.
func TestAheadInARollout(t *testing.T) {
	for version, rollout := range map[string]bool{"v1.36.3": false, "v1.35.0": true} {
		o := known(unhealthyFleet())
		o.Machines[0].Spec.Version = version
		timeouts := observe.Policy(&o.Policies[0]).Timeouts
		want := now().Add(-40 * time.Second).Add(timeouts.Ready)
		if rollout {
			want = want.Add(timeouts.ScaleUp)
		}
		for _, m := range o.Join("prod")[0].Owners[0].Machines {
			if m.Name == "prod-control-plane-h2ttv" && !m.Remediation.Ahead.Until.Equal(want) {
				t.Errorf("rollout %t: until %s, want %s", rollout, m.Remediation.Ahead.Until, want)
			}
		}
	}
}
