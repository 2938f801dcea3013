package remediation

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
)

// fault makes a machine unhealthy.
type fault func(ctx context.Context, c *cluster, m *clusterv1.Machine) error

// notReady makes the kubelet report a problem. Everything else is healthy.
func notReady(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	return c.BreakNode(ctx, m.Status.NodeRef.Name, corev1.ConditionFalse)
}

// kubeletDead makes the node silent, so that its pods cannot be reached through the API server. Its etcd is healthy.
func kubeletDead(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	return c.StopKubelet(ctx, m.Status.NodeRef.Name)
}

// portOpen returns a fault of a machine whose etcd can be reached on its client port.
func portOpen(f fault) fault {
	return func(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
		if err := c.OpenClientPort(ctx, m.Status.NodeRef.Name); err != nil {
			return err
		}
		return f(ctx, c, m)
	}
}

// memberGone removes the machine's member from etcd.
func memberGone(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	if err := c.BreakEtcdMember(ctx, m.Status.NodeRef.Name); err != nil {
		return err
	}
	return notReady(ctx, c, m)
}

// powerLost makes the node and etcd silent. Both are still listed.
func powerLost(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	return c.PowerOff(ctx, m.Status.NodeRef.Name)
}

// leaderDead stops the kubelet of etcd's leader.
func leaderDead(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	if err := c.Lead(ctx, m.Status.NodeRef.Name); err != nil {
		return err
	}
	return kubeletDead(ctx, c, m)
}

// wellAgain reverts notReady and kubeletDead.
func wellAgain(ctx context.Context, c *cluster, m *clusterv1.Machine) error {
	return c.StartKubelet(ctx, m.Status.NodeRef.Name)
}

// stuckNewMachines keeps new machines from starting until release is called. It fails the test if a machine could not
// be stopped.
func (c *cluster) stuckNewMachines(t *testing.T) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w, err := shared.admin.Watch(ctx, &infrav1.DevMachineList{}, client.InNamespace(c.Namespace))
	harness.Must(t, err)
	known := map[string]bool{}
	for _, controlPlane := range []bool{true, false} {
		list, err := c.list(ctx, controlPlane)
		harness.Must(t, err)
		for i := range list {
			known[list[i].Spec.InfrastructureRef.Name] = true
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			m, ok := e.Object.(*infrav1.DevMachine)
			if !ok || e.Type != watch.Added || known[m.Name] {
				continue
			}
			known[m.Name] = true
			if err := startsIn(ctx, m, stuck); err != nil && ctx.Err() == nil {
				t.Errorf("delaying the start of %s: %v", m.Name, err)
			}
		}
	}()
	release = func() {
		cancel()
		w.Stop()
		<-done
	}
	t.Cleanup(release)
	return release
}

// startStuck starts the machines that were kept from starting.
func (c *cluster) startStuck(ctx context.Context, t *testing.T) {
	t.Helper()
	list := &infrav1.DevMachineList{}
	harness.Must(t, shared.admin.List(ctx, list, client.InNamespace(c.Namespace)))
	for i := range list.Items {
		if list.Items[i].Spec.Backend.InMemory.VM.Provisioning.StartupDuration.Duration == stuck {
			harness.Must(t, startsIn(ctx, &list.Items[i], time.Second))
		}
	}
}

// stuck is the duration of each startup step of a machine that does not start.
const stuck = time.Hour

// startsIn sets the duration of a machine's startup steps.
func startsIn(ctx context.Context, m *infrav1.DevMachine, step time.Duration) error {
	takes := fmt.Sprintf(`{"provisioning":{"startupDuration":"%s"}}`, step)
	patch := fmt.Appendf(nil, `{"spec":{"backend":{"inMemory":{"vm":%[1]s,"node":%[1]s,"apiServer":%[1]s,"etcd":%[1]s}}}}`, takes)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return shared.admin.Patch(ctx, m, client.RawPatch("application/merge-patch+json", patch))
}
