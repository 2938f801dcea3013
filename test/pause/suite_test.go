package pause

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/test/harness"
	"scute.dev/test/provider"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// suite has what the tests share, because starting a management cluster is expensive.
type suite struct {
	bed      *testbed.Bed
	programs scuted.Programs
	// green is the target of moves. scute's daemon does not run there.
	blue, green *scuted.Installation
	scute       client.Client
}

// shared is set once by TestMain.
var shared = new(suite) //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "pause", testbed.Options{}, func(ctx context.Context, bed *testbed.Bed) (err error) {
		shared.bed = bed
		for _, side := range []string{"blue", "green"} {
			if err := provider.Install(ctx, bed.Side(side).Client()); err != nil {
				return err
			}
		}
		if shared.programs, shared.blue, shared.green, err = harness.Install(ctx, bed, provider.Values()...); err == nil {
			shared.scute, err = shared.blue.Client()
		}
		return err
	}))
}

// cluster creates a workload cluster and waits until it is available.
func cluster(ctx context.Context, t *testing.T, namespace, name string) {
	t.Helper()
	_, err := shared.blue.Side.CreateCluster(ctx, testbed.Tiny(namespace, name))
	harness.Must(t, err)
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, namespace, name))
}

// folder returns the folder of a new log.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	return dir
}

// create creates a Pause of clusters.
func create(ctx context.Context, t *testing.T, namespace, name string, clusters ...string) *v1alpha1.Pause {
	t.Helper()
	p := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.PauseSpec{Clusters: clusters, Reason: "a test"}}
	harness.Must(t, shared.scute.Create(ctx, p))
	return p
}

// until polls a Pause until is returns true, and returns it.
func until(ctx context.Context, t *testing.T, namespace, name string, is func(*v1alpha1.Pause) bool) *v1alpha1.Pause {
	t.Helper()
	p := &v1alpha1.Pause{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := shared.scute.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p)
		if err == nil && is(p) {
			return p
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("Pause %s/%s: %v: %+v", namespace, name, err, p.Status)
		}
	}
}

func acknowledged(p *v1alpha1.Pause) bool { return p.Status.Phase == v1alpha1.PauseAcknowledged }

// remove deletes a Pause and waits until it no longer exists.
func remove(ctx context.Context, t *testing.T, p *v1alpha1.Pause) {
	t.Helper()
	harness.Must(t, shared.scute.Delete(ctx, p))
	gone(ctx, t, p)
}

func gone(ctx context.Context, t *testing.T, p *v1alpha1.Pause) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	now := &v1alpha1.Pause{}
	for client.IgnoreNotFound(shared.scute.Get(ctx, client.ObjectKeyFromObject(p), now)) == nil {
		if now.UID != p.UID {
			return
		}
		now.UID = ""
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("Pause %s still exists: %+v", p.Name, now.Status)
		}
	}
}

// stands returns whether a Cluster is paused, and its annotations of scute.
func stands(ctx context.Context, t *testing.T, namespace, name string) (paused bool, marks []string) {
	t.Helper()
	c := &clusterv1.Cluster{}
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, c))
	for key, value := range c.Annotations {
		if strings.HasPrefix(key, object.OwnPrefix) {
			marks = append(marks, key+"="+value)
		}
	}
	return ptr.Deref(c.Spec.Paused, false), marks
}

// want checks whether a Cluster is paused, and its number of annotations of scute.
func want(ctx context.Context, t *testing.T, namespace, name string, paused bool, marks int) {
	t.Helper()
	if got, have := stands(ctx, t, namespace, name); got != paused || len(have) != marks {
		t.Errorf("Cluster %s: paused %t with %q, want %t with %d annotations", name, got, have, paused, marks)
	}
}

// userPauses pauses a Cluster as a user does.
func userPauses(ctx context.Context, t *testing.T, namespace, name string) {
	t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	harness.Must(t, shared.blue.Side.Client().Patch(ctx, c, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`)), client.FieldOwner("a-user")))
}

// pausedMachines returns the number of a Cluster's Machines whose condition Paused is True, and of all its Machines.
func pausedMachines(ctx context.Context, t *testing.T, namespace, name string) (paused, all int) {
	t.Helper()
	list := &clusterv1.MachineList{}
	harness.Must(t, shared.blue.Side.Client().List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}))
	for _, m := range list.Items {
		for _, c := range m.Status.Conditions {
			if c.Type == clusterv1.PausedCondition && c.Status == metav1.ConditionTrue {
				paused++
			}
		}
	}
	return paused, len(list.Items)
}
