package remediator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/remediator"
)

// TestHistory checks that the history lists the ended remediations of a policy, newest first, without machines for
// which nothing was started.
func TestHistory(t *testing.T) {
	var s remediator.State
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var started time.Time
	apply := func(events ...remediator.Event) {
		for _, e := range events {
			at = at.Add(time.Minute)
			s.Apply(e, at)
		}
	}
	unhealthy := func(m remediator.Subject, policy string, verdict remediator.Verdict) {
		apply(remediator.MachineMarked{Machine: m, State: remediator.Unhealthy, Reason: "Node Ready Unknown", Source: remediator.FromPolicy, Since: at},
			remediator.Decided{Machine: m, Decision: remediator.Decision{Verdict: verdict, Rule: "r"}, Evidence: remediator.Evidence{PolicyName: policy}})
	}
	apply(remediator.Registered{Owner: remediator.Owner{Kind: "KubeadmControlPlane", Namespace: "fleet", Name: "cp", Cluster: "a"}})

	m1 := remediator.Subject{Name: "m1", UID: "m1"}
	unhealthy(m1, "repair", remediator.Surge)
	apply(remediator.SurgeRequested{Machine: m1, Method: remediator.Surge, Relaxed: true, Attempt: 1})
	started = at
	apply(remediator.ReplacementReady{Replacement: remediator.Subject{Name: "m4", UID: "m4"}}, remediator.VictimDeleting{}, remediator.VictimGone{}, remediator.Succeeded{})
	ended := at
	m2 := remediator.Subject{Name: "m2", UID: "m2"}
	unhealthy(m2, "repair", remediator.Escalate)
	apply(remediator.EscalationStarted{Machine: m2, Step: "reboot"})
	rebooted := at
	apply(remediator.MachineMarkCleared{Machine: m2, Cause: remediator.Recovered, Reason: "healthy again"})
	m3 := remediator.Subject{Name: "m3", UID: "m3"}
	unhealthy(m3, "repair", remediator.Wait)
	apply(remediator.MachineMarkCleared{Machine: m3, Cause: remediator.Recovered, Reason: "healthy again"})
	unhealthy(m3, "other", remediator.OwnerRemediation)
	apply(remediator.HandedOver{Machine: m3, Attempt: 1}, remediator.VictimGone{}, remediator.Succeeded{})

	list := remediator.History(&s, "repair")
	if len(list) != 2 {
		t.Fatalf("History = %+v, want 2 entries", list)
	}
	type row struct {
		Machine, Owner, Cluster, Reason, Method, Outcome, Replacement, Message string
		Started, Finished                                                      time.Time
	}
	var got []row
	for _, r := range list {
		got = append(got, row{r.Machine, r.Owner, r.Cluster, r.Reason, r.Method, string(r.Outcome), r.Replacement, r.Message, r.StartedAt.Time, r.FinishedAt.Time})
	}
	want := []row{
		{"m2", "KubeadmControlPlane/cp", "a", "Node Ready Unknown", "Escalate", "Recovered", "", "healthy again", rebooted, rebooted.Add(time.Minute)},
		{"m1", "KubeadmControlPlane/cp", "a", "Node Ready Unknown", "Surge (relaxed)", "Succeeded", "m4", "replaced by m4", started, ended},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("History (-want +got):\n%s", diff)
	}
}
