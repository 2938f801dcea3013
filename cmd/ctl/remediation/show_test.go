package remediation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/internal/pinned"
	"scute.dev/remediator"
)

func now() time.Time { return time.Date(2026, 7, 30, 12, 5, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

func remediationOf(name string, status v1alpha1.SurgeRemediationStatus) *v1alpha1.SurgeRemediation {
	marked := ago(6 * time.Minute)
	status.MarkedAt, status.Owner, status.Cluster, status.Policy = &marked, "KubeadmControlPlane/prod-control-plane", "prod", "careful"
	status.Reason = "NodeReady is Unknown"
	return &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, CreationTimestamp: ago(5 * time.Minute)}, Status: status}
}

func surging() *v1alpha1.SurgeRemediation {
	started, until := ago(40*time.Second), metav1.NewTime(now().Add(2*time.Hour))
	r := remediationOf("prod-control-plane-h2ttv", v1alpha1.SurgeRemediationStatus{
		Phase: v1alpha1.RemediationReplacing, Decision: "RolloutSurge (relaxed)", Replacement: "prod-control-plane-p4x9d", Attempts: 2, StartedAt: &started,
		Message: "replacement prod-control-plane-p4x9d exists, and is not ready", Next: "nothing if it passes",
		Quorum:     &v1alpha1.QuorumStatus{Voters: 5, Responding: 4, Tolerates: 1},
		Conditions: []metav1.Condition{{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "Replacing", Message: "it goes on by itself", LastTransitionTime: started}},
	})
	r.Status.RemediationID = "fleet/prod-control-plane/1a2b3c4d/" + r.Name
	r.Spec.Hold = &v1alpha1.RemediationHold{Until: &until, Reason: "looking at the disk"}
	return r
}

func TestDescriptionOfARemediation(t *testing.T) {
	for name, width := range map[string]int{"remediation-80": 80, "remediation-pipe": 0} {
		t.Run(name, func(t *testing.T) {
			v, r := output{kit.View{Width: width, Now: now()}}, surging()
			lines := v.describe(r)
			u := &remediator.UnhealthyMachine{
				Subject:  remediator.Subject{Name: r.Name},
				Mark:     remediator.MachineMarked{State: remediator.Scheduled, Reason: "NodeReady is Unknown", Source: remediator.FromHealthCheck, Since: now().Add(-6 * time.Minute)},
				Decision: remediator.Decision{Verdict: remediator.RolloutSurge, Relaxed: true, Rule: "dead-kubelet", Reason: "its etcd answers, its components are not known to be well"},
				Evidence: remediator.Evidence{Replicas: 5, Machines: 5, Ready: 4, Broken: []string{r.Name}, Voters: 5, Silent: []string{"m5"}},
			}
			lines = append(lines, v.historyLines(&Fold{State: remediator.State{Unhealthy: map[types.UID]*remediator.UnhealthyMachine{"u": u}}}, r.Name)...)
			pinned.Lines(t, name, width, append(lines, v.conditions(r.Status.Conditions)...))
		})
	}
}

func TestTableOfRemediations(t *testing.T) {
	list := []*v1alpha1.SurgeRemediation{
		surging(),
		remediationOf("edge-control-plane-kq7ws", v1alpha1.SurgeRemediationStatus{
			Phase: v1alpha1.RemediationFrozen, Decision: "Freeze", Message: "a majority does not answer", Quorum: &v1alpha1.QuorumStatus{Voters: 3, Responding: 1, Tolerates: -1},
		}),
		remediationOf("ext-control-plane-aaaaa", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationHeld, Decision: "Wait", Quorum: &v1alpha1.QuorumStatus{External: true}}),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "new", CreationTimestamp: ago(time.Second)}},
	}
	v := output{kit.View{Now: now()}}
	pinned.Lines(t, "remediations", 100, newNoun().Table(v.View, list, false, false))
	pinned.Lines(t, "remediations-wide", 0, newNoun().Table(v.View, list, true, true))
}

func TestBarOfARemediation(t *testing.T) {
	at := ago(time.Minute)
	for _, c := range []struct {
		name   string
		status v1alpha1.SurgeRemediationStatus
		want   string
	}{
		{"not taken up", v1alpha1.SurgeRemediationStatus{}, "▶···· 1 of 5"},
		{"held", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationHeld}, "‖···· 1 of 5"},
		{"surging", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationSurging, StartedAt: &at}, "✓▶··· 2 of 5"},
		{"frozen with a new machine", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationFrozen, StartedAt: &at, Replacement: "n"}, "✓✓‖·· 3 of 5"},
		{"taken back", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationCancelling, StartedAt: &at}, "✓◀··· 2 of 5"},
		{"deleted first", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationRemoving, Decision: "OwnerRemediation", StartedAt: &at}, "✓▶·· 2 of 4"},
		{"succeeded", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationSucceeded, StartedAt: &at}, "✓✓✓✓✓ 5 of 5"},
		{"recovered before anything was begun", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationRecovered}, "✓···· 1 of 5"},
		{"cannot", v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationFailed, Decision: "CannotRemediate"}, "✗···· 1 of 5"},
	} {
		if got := (output{kit.View{Width: 20, Now: now()}}).bar(remediationOf("m", c.status)); got != c.want {
			t.Errorf("%s: bar = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLineOfARemediation(t *testing.T) {
	want := "Replacing (RolloutSurge (relaxed)): replacement prod-control-plane-p4x9d exists, and is not ready; 4 of 5 voters answer, 1 may still fail; next: nothing if it passes"
	if diff := cmp.Diff(want, factOf(surging())); diff != "" {
		t.Error(diff)
	}
}
