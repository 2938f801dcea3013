package remediation

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// deadlock sets a condition of a Node as a node problem detector does whose clock is a day behind.
func (w *ward) deadlock(ctx context.Context, t *testing.T, status corev1.ConditionStatus) {
	t.Helper()
	yesterday := metav1.NewTime(time.Now().Add(-24 * time.Hour))
	harness.Must(t, w.SetNodeCondition(ctx, w.victim.Status.NodeRef.Name, corev1.NodeCondition{
		Type: "KernelDeadlock", Status: status, Reason: "DockerHung", LastHeartbeatTime: yesterday, LastTransitionTime: yesterday,
	}))
}

// mark returns the victim's unhealthy annotation, or nil.
func (w *ward) mark(ctx context.Context, t *testing.T) *v1alpha1.UnhealthyMark {
	t.Helper()
	m := &clusterv1.Machine{}
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), m))
	value, marked := m.Annotations[v1alpha1.UnhealthyAnnotation]
	if !marked {
		return nil
	}
	mark := &v1alpha1.UnhealthyMark{}
	harness.Must(t, json.Unmarshal([]byte(value), mark))
	return mark
}

// nodeCondition checks a problem that only a condition of the Node shows, which no MachineHealthCheck examines. scute
// does, and the policy's timeout begins when scute first sees the condition.
func nodeCondition(ctx context.Context, t *testing.T) {
	const timeout = 20 * time.Second
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, func(s *v1alpha1.RepairPolicySpec) {
		s.HealthCheck = new(bool)
		s.Checks.UnhealthyNodeConditions = append(s.Checks.UnhealthyNodeConditions,
			v1alpha1.UnhealthyCondition{Type: "KernelDeadlock", Status: "True", Timeout: v1alpha1.Duration{Duration: timeout}})
	})
	var since time.Time
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionTrue} {
		w.deadlock(ctx, t, status)
		harness.Await(ctx, t, "the mark follows KernelDeadlock "+string(status), func() string {
			switch mark := w.mark(ctx, t); {
			case mark == nil && status == corev1.ConditionTrue:
				return "there is none"
			case mark != nil && status == corev1.ConditionFalse:
				return "it says " + mark.Reason
			case mark != nil && (mark.State != "Failing" || mark.Reason != "Node KernelDeadlock True"):
				t.Fatalf("unhealthy annotation = %s: %s, want Failing because of KernelDeadlock", mark.State, mark.Reason)
			case mark != nil:
				since = mark.Since.Time
			}
			return ""
		})
	}
	w.surges(ctx, t)
	if after := time.Since(since); after < timeout {
		t.Errorf("replacement began %s after the condition was seen, before the timeout", after)
	}
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 4)
}
