package remediation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// bounded has workers replaced, whose drains may take no longer than a few seconds.
func bounded(s *v1alpha1.RepairPolicySpec) {
	workers(s)
	s.Removal.DrainTimeout = &v1alpha1.Duration{Duration: 5 * time.Second}
}

// drainHangs is a fault of a machine with a pod that never ends, and that says of itself that a drain waits for it.
func drainHangs(f fault) fault {
	return func(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
		inside, err := c.Client(ctx)
		if err != nil {
			return err
		}
		pod := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: "endless",
				Labels: map[string]string{clusterv1.PodDrainLabel: string(clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted)},
			},
			Spec: corev1.PodSpec{NodeName: m.Status.NodeRef.Name},
		}
		if err := inside.Create(ctx, pod); err != nil {
			return err
		}
		return f(ctx, c, m)
	}
}

// outOfService: a Node of which nothing is heard is tainted when the infrastructure says that its machine is off, and no longer when it
// reports again.
func outOfService(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{ControlPlanes: 1}, func(s *v1alpha1.RepairPolicySpec) {
		s.Hold = &v1alpha1.Duration{Duration: time.Hour}
		s.OutOfService = &v1alpha1.RepairOutOfService{InfrastructureConditions: []v1alpha1.InfrastructureCondition{
			{Type: "PoweredOn", Status: "False", Reason: "Fenced"},
		}}
	})
	harness.Must(t, kubeletDead(ctx, w.cluster, w.victim))
	w.phase(ctx, t, v1alpha1.RemediationHeld)
	if w.tainted(ctx, t) {
		t.Error("a Node is out of service of which is known only that nothing is heard of it")
	}
	w.poweredOn(ctx, t, metav1.ConditionFalse)
	harness.Await(ctx, t, "its Node is out of service", func() string {
		if w.tainted(ctx, t) {
			return ""
		}
		return "it has no taint"
	})
	w.phase(ctx, t, v1alpha1.RemediationHeld, "tainted out-of-service", "PoweredOn False")

	w.poweredOn(ctx, t, metav1.ConditionTrue)
	harness.Must(t, wellAgain(ctx, w.cluster, w.victim))
	harness.Await(ctx, t, "its Node is in service again", func() string {
		m := &clusterv1.Machine{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(w.victim), m))
		if left := m.Annotations["scute.dev/out-of-service"]; left != "" || w.tainted(ctx, t) {
			return fmt.Sprintf("it has the taint, or the annotation %q", left)
		}
		return ""
	})
	w.healed(ctx, t)
}

// poweredOn has the infrastructure machine of the victim say so, or that somebody took its power.
func (w *ward) poweredOn(ctx context.Context, t *testing.T, on metav1.ConditionStatus) {
	t.Helper()
	infra := &infrav1.DevMachine{}
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.victim.Spec.InfrastructureRef.Name}, infra))
	before := infra.DeepCopy()
	conditions := slices.DeleteFunc(infra.GetConditions(), func(c metav1.Condition) bool { return c.Type == "PoweredOn" })
	infra.SetConditions(append(conditions, metav1.Condition{Type: "PoweredOn", Status: on, Reason: "Fenced", LastTransitionTime: metav1.Now()}))
	harness.Must(t, shared.admin.Status().Patch(ctx, infra, client.MergeFrom(before)))
}

// tainted says that the victim's Node is out of service.
func (w *ward) tainted(ctx context.Context, t *testing.T) bool {
	t.Helper()
	inside, err := w.Client(ctx)
	harness.Must(t, err)
	node := &corev1.Node{}
	harness.Must(t, inside.Get(ctx, client.ObjectKey{Name: w.victim.Status.NodeRef.Name}, node))
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
}
