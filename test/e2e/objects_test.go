package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func waitGone(ctx context.Context, t *testing.T, on *scuted.Installation, o client.Object) {
	t.Helper()
	for {
		err := on.Side.Client().Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return
		}
		harness.Must(t, err)
		select {
		case <-ctx.Done():
			t.Fatalf("%s still exists: %v", o.GetName(), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// annotation sets an annotation on the first object of a kind, and returns a function that removes it.
func annotation(ctx context.Context, t *testing.T, on *scuted.Installation, ns, kind, key string) (remove func()) {
	t.Helper()
	for name, u := range objects(ctx, t, on, ns) {
		if strings.HasPrefix(name, kind+" ") {
			annotate(ctx, t, on, u, key, "yes")
			return func() { annotate(ctx, t, on, u, key, nil) }
		}
	}
	t.Fatalf("no %s in namespace %s", kind, ns)
	return nil
}

func annotate(ctx context.Context, t *testing.T, on *scuted.Installation, u *unstructured.Unstructured, key string, value any) {
	t.Helper()
	v := "null"
	if s, ok := value.(string); ok {
		v = `"` + s + `"`
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+key+`":`+v+`}}}`))
	harness.Must(t, on.Side.Client().Patch(ctx, u.DeepCopy(), patch))
}

// pausedCluster pauses or resumes a Cluster as a user does with kubectl.
func pausedCluster(ctx context.Context, t *testing.T, on *scuted.Installation, ns, name string, paused bool) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusters().GroupVersion().WithKind("Cluster"))
	u.SetNamespace(ns)
	u.SetName(name)
	value := "null"
	if paused {
		value = "true"
	}
	harness.Must(t, on.Side.Client().Patch(ctx, u, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":`+value+`}}`))))
}
