package remediation

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestStalled suspends the daemon from the moment at which it has requested two more machines until both exist. The
// surplus machine is deleted, not an older, healthy one.
func TestStalled(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	d := daemon(t, scuted.DaemonOptions{Args: []string{"--leader-elect=false"}}) // a leader would lose its lease during the suspension
	w := newWard(ctx, t, testbed.Cluster{}, methods(v1alpha1.MethodSurge))
	raised := make(chan error, 1)
	go func() { raised <- raisedTo(ctx, w.cluster, 5) }()
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	harness.Must(t, <-raised)
	harness.Must(t, syscall.Kill(d.PID(), syscall.SIGSTOP))
	w.count(ctx, t, 5)
	harness.Must(t, syscall.Kill(d.PID(), syscall.SIGCONT))
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 5)
}

// raisedTo waits until the control plane has this number of replicas.
func raisedTo(ctx context.Context, c *cluster, replicas int32) error {
	watch, err := shared.admin.Watch(ctx, &controlplanev1.KubeadmControlPlaneList{}, client.InNamespace(c.Namespace))
	if err != nil {
		return err
	}
	defer watch.Stop()
	for e := range watch.ResultChan() {
		if k, ok := e.Object.(*controlplanev1.KubeadmControlPlane); ok && *k.Spec.Replicas == replicas {
			return nil
		}
	}
	return fmt.Errorf("nobody asked for %d machines: %w", replicas, ctx.Err())
}

// TestPartsDie stops Cluster API's controllers, the API server or its etcd in the middle of a surge.
func TestPartsDie(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	daemon(t, scuted.DaemonOptions{})
	side := shared.side
	for name, part := range rotation.Cases(t, 3, map[string]struct{ stop, start func(context.Context) error }{
		"controllers": {func(context.Context) error { return side.StopControllers() }, side.StartControllers},
		"api server":  {side.KillAPIServer, side.StartAPIServer},
		"etcd":        {side.KillEtcd, side.StartEtcd},
	}) {
		t.Run(name, func(t *testing.T) {
			var wards []*ward
			for name, method := range map[string]v1alpha1.RepairMethod{"surge": v1alpha1.MethodSurge, "rollout": v1alpha1.MethodRolloutSurge} {
				spec := testbed.Cluster{Namespace: namespaceOf(t) + "-" + name, CertificateExpiryDays: 30}
				wards = append(wards, newWard(ctx, t, spec, methods(method)))
			}
			for _, w := range wards {
				harness.Must(t, notReady(ctx, w.cluster, w.victim))
			}
			for _, w := range wards {
				w.surges(ctx, t)
			}
			harness.Must(t, part.stop(ctx))
			harness.Must(t, part.start(ctx))
			for _, w := range wards {
				w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
				w.healed(ctx, t)
				w.quorum.never(t, 3, 5)
			}
		})
	}
}
