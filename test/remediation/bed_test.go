package remediation

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// TestCluster checks that a cluster of three becomes available, plain and with a topology, and that the faults of the
// other tests change its Machines as they do in real clusters.
func TestCluster(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	for name, spec := range map[string]testbed.Cluster{
		"plain":    {ControlPlanes: 3, CertificateExpiryDays: 7, FailureDomains: []string{"a", "b", "c"}},
		"topology": {ControlPlanes: 3, Workers: 1, Topology: true},
		"external": {ControlPlanes: 2, ExternalEtcd: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(ctx, t, spec)
			machines := c.machines(ctx, true)
			if len(machines) != spec.ControlPlanes {
				t.Fatalf("%d machines, want the control planes of the specification", len(machines))
			}
			domains := map[string]bool{}
			for i := range machines {
				domains[machines[i].Spec.FailureDomain] = true
			}
			if want := max(1, len(spec.FailureDomains)); len(domains) != want {
				t.Errorf("machines in the failure domains %v, want %d of them", domains, want)
			}
			kubeletDies(ctx, t, c, machines[1].Name, machines[1].Status.NodeRef.Name)
			if !spec.ExternalEtcd {
				powerFails(ctx, t, c, machines[1].Name, machines[1].Status.NodeRef.Name)
			}
		})
	}
}

func kubeletDies(ctx context.Context, t *testing.T, c *cluster, machine, node string) {
	t.Helper()
	harness.Must(t, c.StopKubelet(ctx, node))
	c.awaitCondition(ctx, machine, controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition, metav1.ConditionUnknown)
	harness.Must(t, c.StartKubelet(ctx, node))
	c.awaitCondition(ctx, machine, controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition, metav1.ConditionTrue)
}

// powerFails checks that the member of a machine without power stays in the member list, and that Cluster API still
// reports it as healthy.
func powerFails(ctx context.Context, t *testing.T, c *cluster, machine, node string) {
	t.Helper()
	s := c.watchQuorum(t)
	harness.Must(t, c.PowerOff(ctx, node))
	c.awaitCondition(ctx, machine, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, metav1.ConditionUnknown)
	if got := c.condition(ctx, machine, controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition); got != string(metav1.ConditionTrue) {
		t.Errorf("EtcdMemberHealthy of a silent member = %q; if Cluster API detects this now, scute's own probe is no longer needed", got)
	}
	harness.Await(ctx, t, "the sampler sees it", func() string {
		if s.answering() == c.spec.ControlPlanes-1 {
			return ""
		}
		return s.String()
	})
	harness.Must(t, c.PowerOn(ctx, node))
	c.awaitCondition(ctx, machine, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, metav1.ConditionTrue)
	harness.Await(ctx, t, "the member answers again", func() string {
		members, err := shared.bed.Cloud().Etcd(ctx, c.Namespace+"/"+c.Name)
		harness.Must(t, err)
		for _, m := range members {
			if m.Node == node && !m.Answers {
				return "it does not"
			}
		}
		return ""
	})
}
