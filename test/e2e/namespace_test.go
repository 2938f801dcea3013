package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestSharedClass moves two clusters that share a ClusterClass and a Secret one by one, and then moves the whole
// namespace back.
func TestSharedClass(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	const ns = "shared"
	for _, name := range []string{"one", "two"} {
		_, err := shared.blue.Side.CreateCluster(ctx, testbed.Tiny(ns, name))
		harness.Must(t, err)
	}
	for _, name := range []string{"one", "two"} {
		harness.Must(t, shared.blue.Side.WaitAvailable(ctx, ns, name))
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "credentials", OwnerReferences: clusterOwners(ctx, t, shared.blue, ns, "one", "two")},
		StringData: map[string]string{"token": "t"},
	}
	harness.Must(t, shared.blue.Side.Client().Create(ctx, secret))
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	t.Run("the first, and the other never notices", func(t *testing.T) { firstOfTwo(ctx, t, ns) })
	belongs(ctx, t, shared.green, secret, "one")
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}))
	class := objects(ctx, t, shared.green, ns)["ClusterClass in-memory"]
	t.Run("the second takes the class that is there", func(t *testing.T) {
		w := shared.witness(ctx, t)
		over := move(ctx, t, shared.blue, scuted.NewMove(ns, "second", shared.green, "two"))
		succeeded(ctx, t, over, shared.blue, shared.green, w)
		if now := objects(ctx, t, shared.green, ns)["ClusterClass in-memory"]; class == nil || now == nil || now.GetUID() != class.GetUID() {
			t.Error("the target's ClusterClass was replaced")
		}
		belongs(ctx, t, shared.green, secret, "one", "two")
		if err := shared.blue.Side.Client().Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("Get of the Secret at the source after the last user moved = %v, want not found", err)
		}
	})
	harness.Must(t, d.Stop(ctx))
	harness.Daemon(t, shared.green, scuted.DaemonOptions{})
	harness.Must(t, shared.green.PutTarget(ctx, ns, shared.blue))
	t.Run("the whole namespace back", func(t *testing.T) {
		w := shared.witness(ctx, t)
		before := names(objects(ctx, t, shared.green, ns))
		m := scuted.NewMove(ns, "back", shared.blue)
		m.Spec.Selection.All = true
		over := move(ctx, t, shared.green, m)
		succeeded(ctx, t, over, shared.green, shared.blue, w)
		if over.Status.Counts.Clusters != 2 {
			t.Errorf("the move counts %d clusters, want 2", over.Status.Counts.Clusters)
		}
		if after := names(objects(ctx, t, shared.blue, ns)); !slices.Equal(before, after) {
			t.Errorf("objects changed: before %v\nafter %v", before, after)
		}
		belongs(ctx, t, shared.blue, secret, "one", "two")
	})
}

// clusterOwners returns owner references to Clusters of a side. None of them is a controller reference.
func clusterOwners(ctx context.Context, t *testing.T, on *scuted.Installation, namespace string, names ...string) []metav1.OwnerReference {
	t.Helper()
	var refs []metav1.OwnerReference
	for _, name := range names {
		c := &clusterv1.Cluster{}
		harness.Must(t, on.Side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, c))
		refs = append(refs, metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: c.UID})
	}
	return refs
}

// belongs checks that the owners of a Secret are exactly these Clusters of a side.
func belongs(ctx context.Context, t *testing.T, on *scuted.Installation, secret *corev1.Secret, names ...string) {
	t.Helper()
	have := &corev1.Secret{}
	harness.Must(t, on.Side.Client().Get(ctx, client.ObjectKeyFromObject(secret), have))
	owners := slices.SortedFunc(slices.Values(have.OwnerReferences), func(a, b metav1.OwnerReference) int { return strings.Compare(a.Name, b.Name) })
	if diff := cmp.Diff(clusterOwners(ctx, t, on, secret.Namespace, names...), owners); diff != "" {
		t.Errorf("owners of the Secret on %s (-want +got):\n%s", on.Side.Name(), diff)
	}
}

// firstOfTwo checks that the class is copied and also kept at the source, and that objects that stay are not written.
func firstOfTwo(ctx context.Context, t *testing.T, ns string) {
	w, trail := shared.witness(ctx, t), auditTrail(t, shared.blue)
	before := objects(ctx, t, shared.blue, ns)
	over := move(ctx, t, shared.blue, scuted.NewMove(ns, "first", shared.green, "one"))
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s\nfindings: %v", over.Status.Phase, over.Status.Message, over.Status.Findings)
	}
	stays, copied := objects(ctx, t, shared.blue, ns), objects(ctx, t, shared.green, ns)
	for name := range before {
		if stays[name] == nil && copied[name] == nil {
			t.Fatalf("%s exists on neither side", name)
		}
		if both, ofClass := stays[name] != nil && copied[name] != nil, strings.Contains(name, " in-memory"); both != ofClass {
			t.Errorf("%s is on both sides: %v", name, both)
		}
	}
	sameContents(t, contents(only(before, stays)), contents(stays))
	for _, r := range trail.requests(t, func(r request) bool { return ofDaemon(r) && r.changes() }) {
		for name, u := range stays {
			if r.ObjectRef.Name == u.GetName() && strings.HasPrefix(r.ObjectRef.Resource, strings.ToLower(u.GetKind())) {
				t.Errorf("%s stays at the source, but was written: %s", name, r)
			}
		}
	}
	if _, paused := copied["ClusterClass in-memory"].GetAnnotations()["cluster.x-k8s.io/paused"]; paused {
		t.Error("the copied ClusterClass is paused")
	}
	untouched(t, stays)
	untouched(t, copied)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, ns, "two"))
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, ns, "one"))
	w.clean(ctx, t)
}

// only returns the objects of list that are also in having.
func only(list, having map[string]*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	kept := maps.Clone(list)
	maps.DeleteFunc(kept, func(name string, _ *unstructured.Unstructured) bool { return having[name] == nil })
	return kept
}

// succeeded checks that both clusters of the namespace run on one side and that no object remains on the other.
func succeeded(ctx context.Context, t *testing.T, over *v1alpha1.Move, from, to *scuted.Installation, w *witness) {
	t.Helper()
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s\nfindings: %v", over.Status.Phase, over.Status.Message, over.Status.Findings)
	}
	if left := objects(ctx, t, from, over.Namespace); len(left) > 0 {
		t.Errorf("objects remain on %s: %v", from.Side.Name(), names(left))
	}
	for _, name := range []string{"one", "two"} {
		harness.Must(t, to.Side.WaitAvailable(ctx, over.Namespace, name))
	}
	untouched(t, objects(ctx, t, to, over.Namespace))
	w.clean(ctx, t)
}
