package remediation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

func TestLimitsStatus(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	limits := remediator.FleetLimits{
		Mass:       remediator.MassFailure{Percent: 20, Floor: 10, Cooldown: 10 * time.Minute},
		DomainMass: remediator.MassFailure{Percent: 50, Floor: 4, Cooldown: 10 * time.Minute},
	}
	machines := map[string]int{"": 2, "a": 100, "b": 100, "c": 100}
	until := metav1.NewTime(now.Add(9 * time.Minute))
	for name, c := range map[string]struct {
		fleet   remediator.Fleet
		domains []v1alpha1.FailureDomainStatus
		reason  string
		says    string
		again   time.Duration
	}{
		"at rest": {remediator.Fleet{}, nil, "None", "302 machines selected, 0 unhealthy, 0 remediations in progress", time.Minute},
		"some": {
			remediator.Fleet{Unhealthy: map[string]int{"a": 1, "": 1}, Active: map[string]int{"b": 1}, Starts: []time.Time{now, now, now}},
			[]v1alpha1.FailureDomainStatus{{Name: "a", Machines: 100, Unhealthy: 1}, {Name: "b", Machines: 100, Active: 1}},
			"None", "302 machines selected, 2 unhealthy, 1 remediation in progress", time.Minute,
		},
		"a failure domain": {
			remediator.Fleet{Unhealthy: map[string]int{"a": 1, "b": 60}},
			[]v1alpha1.FailureDomainStatus{{Name: "b", Machines: 100, Unhealthy: 60, Failing: true}, {Name: "a", Machines: 100, Unhealthy: 1}},
			"FailureDomains", "no replacement is created in b (60 of 100 machines)", time.Minute,
		},
		"a failure domain that recovered": {
			remediator.Fleet{MassFailuresEnded: map[string]time.Time{"b": now.Add(-time.Minute)}},
			[]v1alpha1.FailureDomainStatus{{Name: "b", Machines: 100, ClosedUntil: &until}},
			"FailureDomainsCooldown", "no replacement is created in b until 2026-05-01T12:09:00Z", time.Minute,
		},
		"the fleet": {
			remediator.Fleet{Unhealthy: map[string]int{"a": 40, "b": 40}},
			[]v1alpha1.FailureDomainStatus{{Name: "a", Machines: 100, Unhealthy: 40}, {Name: "b", Machines: 100, Unhealthy: 40}},
			"Fleet", "nothing starts", time.Minute,
		},
		"the fleet, a moment ago": {
			remediator.Fleet{MassFailuresEnded: map[string]time.Time{"": now.Add(-10*time.Minute + time.Second)}},
			nil, "FleetCooldown", "nothing starts before 2026-05-01T12:00:01Z", time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &v1alpha1.RepairLimits{}
			c.fleet.Limits, c.fleet.Machines = limits, machines
			mass, again := setUsage(&l.Status, &c.fleet, now)
			if again != c.again {
				t.Errorf("requeued after %s", again)
			}
			if diff := cmp.Diff(c.domains, l.Status.FailureDomains); diff != "" {
				t.Errorf("failure domains (-want +got)\n%s", diff)
			}
			if mass.Reason != c.reason || (mass.Status == metav1.ConditionTrue) != (c.reason != "None") {
				t.Errorf("condition = %+v", mass)
			}
			if _, message := availability(l, mass, time.Time{}); !strings.Contains(message, c.says) {
				t.Errorf("message = %q", message)
			}
		})
	}
}

func TestLimitsSayWhyNothingIsBegun(t *testing.T) {
	_, full := availability(&v1alpha1.RepairLimits{}, &metav1.Condition{Status: metav1.ConditionFalse}, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	if !strings.HasSuffix(full, "0 remediations in progress; perWindow is used up, the next one may start at 2026-05-01T12:00:00Z") {
		t.Error(full)
	}
	paused := v1alpha1.RepairLimits{Spec: v1alpha1.RepairLimitsSpec{PauseRequests: []string{"network works"}}}
	unread := v1alpha1.RepairLimits{Unreadable: v1alpha1.Unreadable{Spec: &v1alpha1.UnreadablePart{Field: "spec.window", Problem: "it is a list"}}}
	for want, l := range map[string]*v1alpha1.RepairLimits{"Paused: paused, nothing starts: network works": &paused, "Unreadable: spec.window cannot be read": &unread, "Idle: no RepairPolicy": {}} {
		if reason, message := availability(l, nil, time.Time{}); !strings.HasPrefix(reason+": "+message, want) {
			t.Errorf("begins = %s: %s", reason, message)
		}
	}
}
