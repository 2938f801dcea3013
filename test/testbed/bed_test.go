package testbed_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/cloud"
	"scute.dev/test/testbed"
)

// TestBed checks the functions of a bed that suites use. It uses one bed, because starting one is expensive.
func TestBed(t *testing.T) {
	t.Cleanup(func() { // runs after the bed has stopped
		noGoroutineLeft(t,
			// Cluster API lets these run as long as the process: five idle ones per start of the controllers.
			goleak.IgnoreAnyFunction("sigs.k8s.io/cluster-api/internal/util/ssa.NewCache.func2"),
			// apimachinery leaks one if a watch ends while an event is being delivered.
			goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
			// spdystream keeps a connection of the in-memory provider's port-forward if data for a stream arrives while
			// the connection is being closed: the goroutine that delivers the data has no reader, and the others wait
			// for it.
			goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).Serve"),
			goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).Serve.func2"),
			goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).shutdown"),
			goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).shutdown.func1"))
	})
	bed := testbed.StartForTest(t, testbed.Options{Audit: true})
	blue, green := bed.Side("blue"), bed.Side("green")
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()

	clusters := []testbed.Cluster{
		testbed.Tiny("fleet", "tiny"),
		{Namespace: "fleet", Name: "prod", ControlPlanes: 3, Workers: 2, Topology: true, MachineHealthCheck: true},
		{Namespace: "solo", Name: "solo", Workers: 1, MachineHealthCheck: true},
	}
	for _, c := range clusters {
		if _, err := blue.CreateCluster(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range clusters {
		if err := blue.WaitAvailable(ctx, c.Namespace, c.Name); err != nil {
			t.Fatal(err)
		}
	}
	prod, tiny := bed.Workload("fleet", "prod"), bed.Workload("fleet", "tiny")

	t.Run("the journal says which side wrote", func(t *testing.T) { journalNamesSide(t, bed) })
	t.Run("a snapshot is stable and shows a replacement", func(t *testing.T) { snapshotTells(ctx, t, bed, blue) })
	t.Run("a broken node is seen and can be restored", func(t *testing.T) { nodeBreaks(ctx, t, blue, tiny) })
	t.Run("a broken etcd member is seen and can be restored", func(t *testing.T) { etcdBreaks(ctx, t, blue, prod) })
	t.Run("a ServiceAccount can do what RBAC grants", func(t *testing.T) { accountIsBound(ctx, t, green) })
	t.Run("garbage and namespaces are collected", func(t *testing.T) { garbageGoes(ctx, t, green) })
	t.Run("a killed API server comes back", func(t *testing.T) { serverComesBack(ctx, t, blue) })
	t.Run("controllers stop and start", func(t *testing.T) { controllersRestart(ctx, t, blue) })
}

func journalNamesSide(t *testing.T, bed *testbed.Bed) {
	journal, err := bed.Cloud().Since(0)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	for _, w := range journal.Replacements() {
		if w.Kind == cloud.MachineKind {
			made[w.By]++
		}
	}
	if want := 2 + 5 + 2; made["blue"] != want || len(made) != 1 {
		t.Errorf("machines created, by author: %v, want %d by blue only\n%s", made, want, journal.Replacements())
	}
	if len(journal.Where(func(w cloud.Write) bool { return w.By == cloud.WorkloadAPI && w.Changed })) == 0 {
		t.Error("no write of a workload API in the journal, want the nodes' labels")
	}
}

func snapshotTells(ctx context.Context, t *testing.T, bed *testbed.Bed, side *testbed.Side) {
	before, err := bed.Cloud().Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(before.String(), "fleet/tiny CloudMachine ") {
		t.Fatalf("no machine of fleet/tiny in\n%s", before)
	}
	mark := bed.Cloud().Mark()
	machine := workerOf(ctx, t, side, "fleet", "tiny")
	if err := side.Client().Delete(ctx, machine); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the machine to be replaced", func() bool {
		err := side.Client().Get(ctx, client.ObjectKeyFromObject(machine), &clusterv1.Machine{})
		return apierrors.IsNotFound(err)
	})
	if err := side.WaitAvailable(ctx, "fleet", "tiny"); err != nil {
		t.Fatal(err)
	}
	after, err := bed.Cloud().Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	diff := strings.Join(before.Diff(after), "\n")
	for _, want := range []string{"removed fleet/tiny CloudMachine ", "made fleet/tiny CloudMachine ", "removed fleet/tiny Node ", "made fleet/tiny Node "} {
		if !strings.Contains(diff, want) {
			t.Errorf("difference lacks %q\n%s", want, diff)
		}
	}
	for _, unwanted := range []string{"fleet/prod CloudMachine", "fleet/prod Node"} {
		if strings.Contains(diff, unwanted) {
			t.Errorf("difference has %q, want no change of it\n%s", unwanted, diff)
		}
	}
	since, err := bed.Cloud().Since(mark)
	if err != nil {
		t.Fatal(err)
	}
	if len(since.Replacements()) == 0 {
		t.Error("the journal has no replacement")
	}
}

func nodeBreaks(ctx context.Context, t *testing.T, side *testbed.Side, w *testbed.Workload) {
	machine := workerOf(ctx, t, side, w.Namespace, w.Name)
	node := machine.Status.NodeRef.Name
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		if err := w.BreakNode(ctx, node, status); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, "the machine to see its node", func() bool {
			current := get(ctx, t, side, machine)
			return string(conditions.Get(current, clusterv1.MachineNodeReadyCondition).Status) == string(status)
		})
	}
	missing, err := side.Missing(ctx, w.Namespace, w.Name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(missing, "; "), machine.Name) {
		t.Errorf("Missing with a broken node = %q, want machine %s", missing, machine.Name)
	}
	if err := w.RestoreNode(ctx, node); err != nil {
		t.Fatal(err)
	}
	if err := side.WaitAvailable(ctx, w.Namespace, w.Name); err != nil {
		t.Fatal(err)
	}
}

func etcdBreaks(ctx context.Context, t *testing.T, side *testbed.Side, w *testbed.Workload) {
	nodes, err := w.Nodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	healthy := func() bool {
		machines := &clusterv1.MachineList{}
		if err := side.Client().List(ctx, machines, client.InNamespace(w.Namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: w.Name}); err != nil {
			t.Fatal(err)
		}
		poke(ctx, t, side, w)
		for i := range machines.Items {
			m := &machines.Items[i]
			if m.Status.NodeRef.Name == nodes[0] {
				return conditions.IsTrue(m, "EtcdMemberHealthy") && conditions.IsTrue(m, "EtcdPodHealthy")
			}
		}
		t.Fatalf("no machine of node %s", nodes[0])
		return false
	}
	for _, fault := range []struct {
		cause, undo func(context.Context, string) error
	}{
		{w.BreakEtcdPod, w.RestoreEtcdPod},
		{w.BreakEtcdMember, w.RestoreEtcdMember},
	} {
		eventually(ctx, t, "etcd to be healthy", healthy)
		if err := fault.cause(ctx, nodes[0]); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, "etcd to be unhealthy", func() bool { return !healthy() })
		if err := fault.undo(ctx, nodes[0]); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, "etcd to be healthy again", healthy)
	}
}

// poke triggers the control plane's controller, because it does not watch pods.
func poke(ctx context.Context, t *testing.T, side *testbed.Side, w *testbed.Workload) {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := side.Client().List(ctx, machines, client.InNamespace(w.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: w.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		t.Fatal(err)
	}
	m := &machines.Items[0]
	original := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations["test.scute.dev/poked"] = time.Now().String()
	if err := side.Client().Patch(ctx, m, client.MergeFrom(original)); err != nil {
		t.Fatal(err)
	}
}

func accountIsBound(ctx context.Context, t *testing.T, side *testbed.Side) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "reader"}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
		},
	} {
		if err := side.Client().Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	config, kubeconfig, err := side.ServiceAccountConfig(ctx, "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	if len(kubeconfig) == 0 {
		t.Error("the kubeconfig is empty")
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the granted request to pass", func() bool {
		return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default")) == nil
	})
	if err := c.List(ctx, &corev1.SecretList{}, client.InNamespace("default")); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: %v, want Forbidden", err)
	}
	log, err := os.ReadFile(side.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "system:serviceaccount:default:reader") {
		t.Error("the audit log has no request of the account")
	}
}

func garbageGoes(ctx context.Context, t *testing.T, side *testbed.Side) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "passing", Name: "owner"}}
	for _, object := range []client.Object{namespace, owner} {
		if err := side.Client().Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "passing", Name: "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}
	if err := side.Client().Create(ctx, owned); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ remove, gone client.Object }{{owner, owned}, {namespace, namespace}} {
		if err := side.Client().Delete(ctx, step.remove); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, step.gone.GetName()+" to be gone", func() bool {
			return apierrors.IsNotFound(side.Client().Get(ctx, client.ObjectKeyFromObject(step.gone), step.gone))
		})
	}
}

func serverComesBack(ctx context.Context, t *testing.T, side *testbed.Side) {
	if err := side.KillAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if err := side.Client().List(ctx, &corev1.NamespaceList{}); err == nil {
		t.Error("the killed API server still answers")
	}
	if err := side.KillEtcd(ctx); err != nil {
		t.Fatal(err)
	}
	if err := side.StartEtcd(ctx); err != nil {
		t.Fatal(err)
	}
	if err := side.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if err := side.WaitAvailable(ctx, "fleet", "prod"); err != nil {
		t.Fatal(err)
	}
}

func controllersRestart(ctx context.Context, t *testing.T, side *testbed.Side) {
	if err := side.StopControllers(); err != nil {
		t.Fatal(err)
	}
	machine := workerOf(ctx, t, side, "fleet", "tiny")
	changed := machine.DeepCopy()
	changed.Labels["test.scute.dev/changed"] = ""
	if err := side.Client().Patch(ctx, changed, client.MergeFrom(machine)); err == nil {
		t.Error("change of a Machine without webhooks succeeded, want an error")
	}
	if err := side.StartControllers(ctx); err != nil {
		t.Fatal(err)
	}
	if err := side.Client().Delete(ctx, machine); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the machine to be gone", func() bool {
		return apierrors.IsNotFound(side.Client().Get(ctx, client.ObjectKeyFromObject(machine), &clusterv1.Machine{}))
	})
	if err := side.WaitAvailable(ctx, "fleet", "tiny"); err != nil {
		t.Fatal(err)
	}
}

func workerOf(ctx context.Context, t *testing.T, side *testbed.Side, namespace, name string) *clusterv1.Machine {
	t.Helper()
	machines := &clusterv1.MachineList{}
	if err := side.Client().List(ctx, machines, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}); err != nil {
		t.Fatal(err)
	}
	for i := range machines.Items {
		if _, ok := machines.Items[i].Labels[clusterv1.MachineControlPlaneLabel]; !ok {
			return &machines.Items[i]
		}
	}
	t.Fatalf("no worker in %s/%s", namespace, name)
	return nil
}

func get(ctx context.Context, t *testing.T, side *testbed.Side, m *clusterv1.Machine) *clusterv1.Machine {
	t.Helper()
	current := &clusterv1.Machine{}
	if err := side.Client().Get(ctx, client.ObjectKeyFromObject(m), current); err != nil {
		t.Fatal(err)
	}
	return current
}

// noGoroutineLeft waits until connections have been closed. goleak waits for only half a second.
func noGoroutineLeft(t *testing.T, known ...goleak.Option) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := goleak.Find(known...)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Error(err)
			return
		}
	}
}

func eventually(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting for %s: %v", what, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
