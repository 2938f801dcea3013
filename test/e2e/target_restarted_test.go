package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestTargetRestarted moves to a management cluster whose API server was down. Its controllers reconnect their watches
// one kind at a time. A controller that sees a MachineSet before its Machines would create another Machine. The test
// checks that no machine is created or deleted in the cloud.
func TestTargetRestarted(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "to-restarted"
	shared.cluster(ctx, t, shared.blue, testbed.Cluster{Namespace: ns, Name: "prod", ControlPlanes: 1, Workers: 2})
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	w := shared.witness(ctx, t)
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	side := shared.green.Side
	harness.Must(t, side.KillAPIServer(ctx))
	time.Sleep(15 * time.Second) // so that the watches retry well after the API server is back
	harness.Must(t, side.StartAPIServer(ctx))
	over := move(ctx, t, shared.blue, scuted.NewMove(ns, "prod-to-green", shared.green, "prod"))
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	t.Logf("moved in %s", over.Status.FinishedAt.Sub(over.Status.StartedAt.Time).Round(time.Second))
	harness.Must(t, side.WaitAvailable(ctx, ns, "prod"))
	w.clean(ctx, t)
}

// TestTargetCredentialsRotated replaces the account that a move uses on the target while the move is in progress. The
// Move reports what it needs, and continues when the Secret has the new credentials.
func TestTargetCredentialsRotated(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns, name = "to-rotated", "rotated"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: scuted.Namespace, Name: name}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: shared.green.Side.Name()}}
	secret.StringData = map[string]string{"value": accountOnGreen(name, func(all []rbacv1.PolicyRule) []rbacv1.PolicyRule { return all })(ctx, t)}
	harness.Must(t, shared.blue.Side.Client().Create(ctx, secret))
	w := shared.witness(ctx, t)
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	release := annotation(ctx, t, shared.blue, ns, "DevCluster", "clusterctl.cluster.x-k8s.io/block-move")
	wait := func(done func(*v1alpha1.Move) bool) *v1alpha1.Move {
		m, err := shared.blue.Wait(ctx, ns, "tiny-to-green", done)
		harness.Must(t, err)
		return m
	}
	harness.Must(t, shared.blue.Create(ctx, scuted.NewMove(ns, "tiny-to-green", shared.green, "tiny")))
	wait(func(m *v1alpha1.Move) bool {
		return m.Status.Phase == mover.PhaseAwaitingAcks && len(m.Status.WaitingFor) == 1
	})
	harness.Must(t, shared.green.Side.Client().Delete(ctx, account.DeepCopy()))
	release()
	wait(func(m *v1alpha1.Move) bool {
		return strings.Contains(m.Status.Message, "Unauthorized") && strings.Contains(m.Status.Next, "renew the credentials")
	})

	harness.Must(t, shared.green.Side.Client().Create(ctx, account))
	_, renewed, err := shared.green.Side.ServiceAccountConfig(ctx, scuted.Namespace, name)
	harness.Must(t, err)
	secret.StringData = map[string]string{"value": string(renewed)}
	harness.Must(t, shared.blue.Side.Client().Update(ctx, secret))
	if over := wait(scuted.Over); over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, ns, "tiny"))
	w.clean(ctx, t)
}
