package lifecycle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
)

// TestByHand checks workflows for a cluster that a user has scaled, upgraded or recreated meanwhile.
func TestByHand(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	side := shared.blue
	params := func(version, counts string) string {
		return strings.NewReplacer("VERSION", version, "COUNTS", counts).Replace(`provider: in-memory
cluster: {namespace: hands, name: h, version: v1.36.0COUNTS}
upgrade: {version: VERSION}
settings: {networkVersion: "VERSION", componentsVersion: "1"}
`)
	}
	const counts = ", controlPlaneReplicas: 3, workerReplicas: 1"
	newSession(t, "workload-create", params(newer, counts)).run(ctx, 0)
	harness.Must(t, side.WaitAvailable(ctx, "hands", "h"))

	t.Run("upgraded without numbers", func(t *testing.T) {
		md := &clusterv1.MachineDeployment{}
		harness.Must(t, side.Client().Get(ctx, client.ObjectKey{Namespace: "hands", Name: "h-md-0"}, md))
		md.Spec.Replicas = new(int32(2)) // as a user does
		harness.Must(t, side.Client().Update(ctx, md))
		newSession(t, "workload-upgrade", params(newer, "")).run(ctx, 0)
		if got := versions(ctx, side, "hands", "h"); !slices.Equal(got, []string{newer, newer, newer, newer, newer}) {
			t.Errorf("versions of the machines = %v, want five new ones: the upgrade scaled the cluster", got)
		}
	})

	t.Run("upgraded by hand", func(t *testing.T) {
		s := newSession(t, "workload-upgrade", params(older, counts))
		s.run(ctx, 1)
		if !strings.Contains(s.said(), "already has version "+newer+": Kubernetes cannot be downgraded") {
			t.Errorf("output of a downgrade lacks the reason:\n%s", s.said())
		}
		again := newSession(t, "workload-create", params(newer, counts)) // with the older version
		again.run(ctx, 1)
		if !strings.Contains(again.said(), "cannot be downgraded to "+older+": set params.cluster.version") {
			t.Errorf("output of another creation lacks the reason:\n%s", again.said())
		}
		cp := &controlplanev1.KubeadmControlPlane{}
		harness.Must(t, side.Client().Get(ctx, client.ObjectKey{Namespace: "hands", Name: "h-control-plane"}, cp))
		if cp.Spec.Version != newer {
			t.Errorf("version of the control plane = %s, want the newer one", cp.Spec.Version)
		}
		workload, err := shared.bed.Workload("hands", "h").Client(ctx)
		harness.Must(t, err)
		if v := written(ctx, t, workload, "in-memory-network"); v != newer {
			t.Errorf("version of the network = %s, want the newer one", v)
		}
	})

	t.Run("made again while it was deleted", func(t *testing.T) {
		s := newSession(t, "workload-delete", params(newer, counts))
		s.killWhen(ctx, "the cluster is being deleted", goes(side, "hands", "h"))
		harness.Must(t, side.WaitGone(ctx, "hands", "h"))
		newSession(t, "workload-create", params(newer, counts)).run(ctx, 0)
		before := madeOf(ctx, t, "hands")
		s.run(ctx, 1)
		if !strings.Contains(s.said(), "another Cluster hands/h") {
			t.Errorf("output of the deletion lacks the other Cluster:\n%s", s.said())
		}
		if after := madeOf(ctx, t, "hands"); !maps.Equal(before, after) {
			t.Errorf("the deletion changed the other cluster:\nbefore %v\nafter %v", before, after)
		}
		newSession(t, "workload-delete", params(newer, counts)).run(ctx, 0)
		if kinds := left(ctx, t, side, "hands"); len(kinds) > 0 {
			t.Errorf("objects remain: %v", kinds)
		}
	})
}

// madeOf returns the UIDs of the objects of the cluster h that are not being deleted.
func madeOf(ctx context.Context, t *testing.T, namespace string) map[string]types.UID {
	t.Helper()
	found := make(map[string]types.UID)
	for _, o := range []*unstructured.Unstructured{
		object("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", namespace, "h-machine"),
		object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", namespace, "h-worker"),
		object("infrastructure.cluster.x-k8s.io/v1beta2", "DevCluster", namespace, "h"),
		object("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", namespace, "h-control-plane"),
		object("cluster.x-k8s.io/v1beta2", "Cluster", namespace, "h"),
		object("cluster.x-k8s.io/v1beta2", "MachineDeployment", namespace, "h-md-0"),
	} {
		harness.Must(t, client.IgnoreNotFound(shared.blue.Client().Get(ctx, client.ObjectKeyFromObject(o), o)))
		if o.GetUID() != "" && o.GetDeletionTimestamp() == nil {
			found[o.GetKind()] = o.GetUID()
		}
	}
	return found
}
