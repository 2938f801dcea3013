package remediation

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
)

// bounded enables the replacement of workers, and limits their drains to a few seconds.
func bounded(s *v1alpha1.RepairPolicySpec) {
	workers(s)
	s.Removal.DrainTimeout = &v1alpha1.Duration{Duration: 5 * time.Second}
}

// drainHangs returns a fault of a machine with a pod that never ends and for which a drain waits.
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
