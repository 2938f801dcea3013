package remediation

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"scute.dev/test/testbed"
)

// TestCluster: a cluster of three comes up, plain and managed by its topology, and the faults that the other tests cause
// appear on its Machines as they do on real ones.
func TestCluster(t *testing.T) {
	ctx := deadline(t, 5*time.Minute)
	for name, spec := range map[string]testbed.Cluster{
		"plain":    {ControlPlanes: 3, CertificateExpiryDays: 7},
		"topology": {ControlPlanes: 3, Workers: 1, Topology: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(ctx, t, spec)
			machines := c.machines(ctx, true)
			if len(machines) != 3 {
				t.Fatalf("%d machines", len(machines))
			}
			victim := machines[1]
			must(t, c.BreakNode(ctx, victim.Status.NodeRef.Name, corev1.ConditionUnknown))
			for _, condition := range []string{
				controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
				controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
			} {
				c.awaitCondition(ctx, victim.Name, condition, metav1.ConditionUnknown)
			}
			must(t, c.RestoreNode(ctx, victim.Status.NodeRef.Name))
			c.awaitCondition(ctx, victim.Name, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, metav1.ConditionTrue)
		})
	}
}
