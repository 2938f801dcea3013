package e2e

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

func inNamespace(namespace string) client.InNamespace { return client.InNamespace(namespace) }

// move creates a Move and waits until it ends.
func move(ctx context.Context, t *testing.T, from *scuted.Installation, m *v1alpha1.Move) *v1alpha1.Move {
	t.Helper()
	harness.Must(t, from.Create(ctx, m))
	over, err := from.Wait(ctx, m.Namespace, m.Name, scuted.Over)
	harness.Must(t, err)
	return over
}

// TestMove moves a cluster that has every kind of object, and then checks that the target's controllers work.
func TestMove(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "moving"
	shared.cluster(ctx, t, shared.blue, testbed.Cluster{Namespace: ns, Name: "prod", ControlPlanes: 3, Workers: 2, Topology: true, MachineHealthCheck: true})
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	// If the namespace exists, the preflight tries every object on the target.
	harness.Must(t, shared.green.Side.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))

	before := objects(ctx, t, shared.blue, ns)
	w := shared.witness(ctx, t)
	paused := watchPauses(t, shared.blue, ns)
	metrics := ports.AddressForTest(t)
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{Metrics: metrics})

	over := move(ctx, t, shared.blue, scuted.NewMove(ns, "prod-to-green", shared.green, "prod"))
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s\nfindings: %v", over.Status.Phase, over.Status.Message, over.Status.Findings)
	}
	t.Logf("moved %d objects in %s", over.Status.Counts.Objects, over.Status.FinishedAt.Sub(over.Status.StartedAt.Time).Round(time.Millisecond))
	if left := objects(ctx, t, shared.blue, ns); len(left) > 0 {
		t.Errorf("objects remain at the source: %v", names(left))
	}
	after := objects(ctx, t, shared.green, ns)
	if !slices.Equal(names(before), names(after)) {
		t.Errorf("objects changed: before %v\nafter %v", names(before), names(after))
	}
	untouched(t, after)
	sameManagers(t, before, after)
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, ns, "prod"))
	w.clean(ctx, t)
	paused.none(t)
	measured(ctx, t, metrics, `scute_events_total{type="dev.scute.move.succeeded.v1"} 1`, `scute_log_accepts_new 1`)

	t.Run("the target's controllers work", func(t *testing.T) { scaleWorkers(ctx, t, shared.green, ns, "prod", 3) })
}

// measured checks that the metrics of a daemon contain these lines.
func measured(ctx context.Context, t *testing.T, address string, lines ...string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	harness.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	harness.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	harness.Must(t, err)
	for _, line := range lines {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
}

// sameManagers checks that the manager that applied a field at the source owns it on the target too. Otherwise
// templates could not remove the field.
func sameManagers(t *testing.T, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	applied := func(u *unstructured.Unstructured) []string {
		var found []string
		for _, e := range u.GetManagedFields() {
			if e.Operation == metav1.ManagedFieldsOperationApply {
				found = append(found, e.Manager)
			}
		}
		slices.Sort(found)
		return found
	}
	for name, u := range before {
		if have := after[name]; have != nil && !slices.Equal(applied(u), applied(have)) {
			t.Errorf("%s: applied by %v at the source, by %v on the target", name, applied(u), applied(have))
		}
	}
}

func scaleWorkers(ctx context.Context, t *testing.T, on *scuted.Installation, ns, name string, replicas int32) {
	t.Helper()
	admin := on.Side.Client()
	c := &clusterv1.Cluster{}
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, c))
	patch := client.MergeFrom(c.DeepCopy())
	c.Spec.Topology.Workers.MachineDeployments[0].Replicas = ptr.To(replicas)
	harness.Must(t, admin.Patch(ctx, c, patch))
	for {
		machines := &clusterv1.MachineList{}
		harness.Must(t, admin.List(ctx, machines, inNamespace(ns), client.HasLabels{clusterv1.MachineDeploymentNameLabel}))
		ready := 0
		for _, m := range machines.Items {
			if m.Status.NodeRef.Name != "" {
				ready++
			}
		}
		if len(machines.Items) == int(replicas) && ready == int(replicas) {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d workers are ready: %v", ready, replicas, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
	harness.Must(t, on.Side.WaitAvailable(ctx, ns, name))
}

func names(objects map[string]*unstructured.Unstructured) []string {
	var list []string
	for name := range objects {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
