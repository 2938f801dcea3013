package lifecycle

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// classed is a template like those of clusterctl, which also contain the ClusterClass.
const classed = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: in-memory}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: in-memory-worker}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: in-memory-worker}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-a}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${CLUSTER_NAME}"}
`

// TestAClassThatAnotherClusterUses deletes one of two Clusters of a ClusterClass. The class and its templates stay
// until the other one is deleted too.
func TestAClassThatAnotherClusterUses(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	side := shared.blue
	const namespace = "classed"
	for _, name := range []string{"a", "b"} {
		_, err := side.CreateCluster(ctx, testbed.Tiny(namespace, name))
		harness.Must(t, err)
	}
	for _, name := range []string{"a", "b"} {
		harness.Must(t, side.WaitAvailable(ctx, namespace, name))
	}
	harness.Must(t, side.Client().Create(ctx, object("v1", "ConfigMap", namespace, "of-a")))
	template := filepath.Join(t.TempDir(), "cluster.yaml")
	harness.Must(t, os.WriteFile(template, []byte(classed), 0o600))
	there := func(want bool, objects ...*unstructured.Unstructured) {
		t.Helper()
		for _, o := range objects {
			err := side.Client().Get(ctx, client.ObjectKeyFromObject(o), o)
			harness.Must(t, client.IgnoreNotFound(err))
			if (err == nil) != want {
				t.Errorf("%s %s exists: %t", o.GetKind(), o.GetName(), err == nil)
			}
		}
	}
	class := []*unstructured.Unstructured{
		object("cluster.x-k8s.io/v1beta2", "ClusterClass", namespace, "in-memory"),
		object("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", namespace, "in-memory-worker"),
		object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", namespace, "in-memory-worker"),
	}
	for _, c := range []struct {
		name  string
		stays bool
	}{{"a", true}, {"b", false}} {
		s := newSession(t, "workload-delete", "cluster: {namespace: "+namespace+", name: "+c.name+", version: v1.36.0, template: {file: "+template+"}}\n")
		s.program = shared.ctl
		s.args = []string{"run", "--local", "-f", s.manifest, "--log", s.log(), "--kubeconfig", side.KubeconfigPath()}
		s.run(ctx, 0)
		harness.Must(t, side.WaitGone(ctx, namespace, c.name))
		there(c.stays, class...)
		there(false, object("v1", "ConfigMap", namespace, "of-a"))
	}
}
