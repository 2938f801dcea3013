package pause

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestAToolPausesMeanwhile checks a GitOps tool that applies spec.paused. If it applied false before a Pause, nothing
// stays paused afterwards. If it applies true during the Pause, the Cluster stays paused until the tool applies false.
func TestAToolPausesMeanwhile(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const namespace = "gitops"
	cluster(ctx, t, namespace, "a")
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	applyPaused(ctx, t, namespace, "a", false)
	p := create(ctx, t, namespace, "first", "a")
	until(ctx, t, namespace, p.Name, acknowledged)
	want(ctx, t, namespace, "a", true, 2)
	remove(ctx, t, p)
	want(ctx, t, namespace, "a", false, 0)

	p = create(ctx, t, namespace, "second", "a")
	until(ctx, t, namespace, p.Name, acknowledged)
	applyPaused(ctx, t, namespace, "a", true)
	remove(ctx, t, p)
	want(ctx, t, namespace, "a", true, 0)

	applyPaused(ctx, t, namespace, "a", false)
	want(ctx, t, namespace, "a", false, 0)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, "a"))
}

// applyPaused applies spec.paused with server-side apply, as Flux does.
func applyPaused(ctx context.Context, t *testing.T, namespace, name string, paused bool) {
	t.Helper()
	manifest := fmt.Sprintf(`{"apiVersion": %q, "kind": "Cluster", "metadata": {"namespace": %q, "name": %q}, "spec": {"paused": %t}}`,
		clusterv1.GroupVersion, namespace, name, paused)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	harness.Must(t, shared.blue.Side.Client().Patch(ctx, c, client.RawPatch("application/apply-patch+yaml", []byte(manifest)), client.FieldOwner("kustomize-controller"), client.ForceOwnership))
}
