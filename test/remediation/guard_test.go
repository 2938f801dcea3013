package remediation

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// guarded checks that the API server refuses deletions of a machine while the etcd member of another one does not
// answer, and that the error has the reason.
func guarded(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{ControlPlanes: 3}, func(s *v1alpha1.RepairPolicySpec) { s.GuardDeletions = true })
	other, needed, silent := &w.before[0], &w.before[1], &w.before[2]
	harness.Must(t, w.CutEtcdOff(silent.Status.NodeRef.Name))
	const why = "too few members of etcd answer"
	w.awaitNeeded(ctx, t, needed, why)
	if err := shared.admin.Delete(ctx, needed); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "scute.dev/delete-anyway") {
		t.Fatalf("Delete = %v, want Forbidden with the reason", err)
	}
	harness.Must(t, w.RejoinEtcd(ctx, silent.Status.NodeRef.Name))
	w.awaitNeeded(ctx, t, needed, "")

	// One of three may be deleted, and a second one only after the first no longer exists.
	const hook = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/test"
	w.annotate(ctx, needed, hook, "somebody")
	harness.Must(t, shared.admin.Delete(ctx, needed))
	w.awaitNeeded(ctx, t, other, needed.Name+" is being deleted")
	w.annotate(ctx, needed, hook, "")
	w.awaitNeeded(ctx, t, other, "")
}

// awaitNeeded waits until a machine's annotation has the reason why etcd needs it.
func (w *ward) awaitNeeded(ctx context.Context, t *testing.T, machine *clusterv1.Machine, why string) {
	t.Helper()
	harness.Await(ctx, t, machine.Name+" is needed: "+why, func() string {
		w.poke(ctx)
		m := &clusterv1.Machine{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(machine), m))
		if value := m.Annotations[object.NeededAnnotation]; value == "" && why != "" || !strings.Contains(value, why) || value != "" && why == "" {
			return "it says " + value
		}
		return ""
	})
}
