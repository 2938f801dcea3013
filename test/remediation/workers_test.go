package remediation

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// workersAtOnce allows the replacement of two workers of one owner at once.
func workersAtOnce(s *v1alpha1.RepairPolicySpec) {
	s.Workers, s.Limits.WorkersAtOnce = true, 2
}

// atOnce returns a check of the policy's history for the highest number of victims that were replaced at the same time.
func atOnce(want int) func(context.Context, *testing.T, *cluster, []clusterv1.Machine) {
	return func(ctx context.Context, t *testing.T, c *cluster, victims []clusterv1.Machine) {
		t.Helper()
		past := make(map[string]v1alpha1.PastRemediation)
		p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: policyName}}
		awaitPolicy(ctx, t, p, "the policy has all replacements in its history", func(s *v1alpha1.RepairPolicyStatus) bool {
			for _, r := range s.History {
				if r.Outcome == v1alpha1.RemediationSucceeded {
					past[r.Machine] = r
				}
			}
			return !slices.ContainsFunc(victims, func(m clusterv1.Machine) bool { _, ok := past[m.Name]; return !ok })
		})
		most := 0
		for _, r := range past {
			t.Logf("%s: %s to %s", r.Machine, r.StartedAt.UTC().Format(time.TimeOnly), r.FinishedAt.UTC().Format(time.TimeOnly))
			n := 0
			for _, other := range past {
				if !other.StartedAt.After(r.StartedAt.Time) && other.FinishedAt.After(r.StartedAt.Time) {
					n++
				}
			}
			most = max(most, n)
		}
		if most != want {
			t.Errorf("%d workers were replaced at the same time, want %d", most, want)
		}
		if n := len(c.machines(ctx, false)); n != c.spec.Workers {
			t.Errorf("%d workers, want as many as before", n)
		}
	}
}

// TestFleetBoundsWorkersAtOnce checks that workers are replaced one after the other if RepairLimits allow one
// remediation, although the policy allows two workers of one owner.
func TestFleetBoundsWorkersAtOnce(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	limits := &v1alpha1.RepairLimits{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.RepairLimitsName}, Spec: v1alpha1.RepairLimitsSpec{AtOnce: 1}}
	harness.Must(t, shared.admin.Create(ctx, limits))
	t.Cleanup(func() {
		harness.Must(t, client.IgnoreNotFound(shared.admin.Delete(context.WithoutCancel(ctx), limits)))
	})
	daemon(t, scuted.DaemonOptions{})
	replace{
		cluster: testbed.Cluster{Workers: 3}, policy: workersAtOnce, workers: true, fault: notReady, victims: 2, decides: "Surge", members: 1, machines: 1, also: atOnce(1),
	}.play(ctx, t)
}
