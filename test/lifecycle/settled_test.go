package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/apply"
	"scute.dev/workflow/tasks/wait"
)

// TestSettled checks that a task that waits until a cluster is settled ignores statuses from before the change,
// whichever object of the cluster it reads and however early. The machines are listed as soon as the wait ends.
func TestSettled(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	_, err := blue().CreateCluster(ctx, testbed.Cluster{Namespace: "settles", Name: "s", Workers: 2, Topology: true})
	harness.Must(t, err)
	perform := func(name string, kind task.Kind, with string, values ...any) {
		t.Helper()
		s := &step{t: t, kind: kind, namespace: "settles", name: name, with: json.RawMessage(fmt.Sprintf(with, values...))}
		harness.Must(t, s.run(ctx))
	}
	const cluster = `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "s"}`
	// topology applies a version and a number of workers, and waits if wait is true.
	topology := func(version string, workers int, wait bool) {
		t.Helper()
		perform("apply", &apply.Kind{Clusters: clusters()}, `{"force": true, "wait": %t, "manifests": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
			"metadata": {"name": "s"}, "spec": {"topology": {"classRef": {"name": "in-memory"}, "version": %q,
			"workers": {"machineDeployments": [{"class": "worker", "name": "md-0", "replicas": %d}]}}}}]}`, wait, version, workers)
	}
	wait := func(what string) {
		t.Helper()
		perform("wait", &wait.Kind{Clusters: clusters()}, `{%s, "for": "settled"}`, what)
	}
	deployments := `"selector": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "labelSelector": "cluster.x-k8s.io/cluster-name=s"}`

	wait(`"object": ` + cluster)
	wantMachines(ctx, t, "v1.36.0", 3)
	wait(deployments)
	wait(`"selector": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "labelSelector": "cluster.x-k8s.io/cluster-name=s"}`)
	wait(`"selector": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "labelSelector": "cluster.x-k8s.io/cluster-name=s"}`)

	topology("v1.36.1", 2, false)
	wait(`"object": ` + cluster)
	wantMachines(ctx, t, "v1.36.1", 3)

	topology("v1.36.1", 3, true)
	wantMachines(ctx, t, "v1.36.1", 4)

	topology("v1.36.2", 3, true)
	wantMachines(ctx, t, "v1.36.2", 4)
}

// TestSettledDeployment changes the version of a MachineDeployment itself. Its status is computed from those of its
// MachineSets, and describes the old template for some time after the controller has observed the new one.
func TestSettledDeployment(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	_, err := blue().CreateCluster(ctx, testbed.Cluster{Namespace: "settles-md", Name: "s", Workers: 2, Version: "v1.36.9"})
	harness.Must(t, err)
	harness.Must(t, blue().WaitAvailable(ctx, "settles-md", "s"))
	key := client.ObjectKey{Namespace: "settles-md", Name: "s-md-0"}
	for i, version := range []string{"v1.36.8", "v1.36.7", "v1.36.6"} {
		md := &clusterv1.MachineDeployment{}
		harness.Must(t, blue().Client().Get(ctx, key, md))
		before := md.DeepCopy()
		md.Spec.Template.Spec.Version = version
		harness.Must(t, blue().Client().Patch(ctx, md, client.MergeFrom(before)))
		s := &step{t: t, kind: &wait.Kind{Clusters: clusters()}, namespace: key.Namespace, name: fmt.Sprintf("wait-%d", i), with: json.RawMessage(
			`{"object": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "name": "s-md-0"}, "for": "settled"}`)}
		harness.Must(t, s.run(ctx))
		list := &clusterv1.MachineList{}
		harness.Must(t, blue().Client().List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: key.Name}))
		if got := describe(list.Items); got != strings.Repeat(version+" ", 2) {
			t.Fatalf("versions of the workers just after the MachineDeployment settled at %s = %s", version, got)
		}
	}
}

// wantMachines checks the machines at once.
func wantMachines(ctx context.Context, t *testing.T, version string, n int) {
	t.Helper()
	list := &clusterv1.MachineList{}
	harness.Must(t, blue().Client().List(ctx, list, client.InNamespace("settles")))
	if got := describe(list.Items); got != strings.Repeat(version+" ", n) {
		t.Fatalf("versions of the machines just after the cluster settled = %s, want %d of %s", got, n, version)
	}
}

func describe(machines []clusterv1.Machine) string {
	text := ""
	for i := range machines {
		text += machines[i].Spec.Version
		if !machines[i].DeletionTimestamp.IsZero() {
			text += " (being deleted)"
		}
		text += " "
	}
	return text
}
