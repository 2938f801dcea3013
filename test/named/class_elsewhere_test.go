package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
)

// smallClass is a ClusterClass with a template, and an unrelated Cluster.
const smallClass = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevClusterTemplate
metadata: {name: small, namespace: NAMESPACE}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlaneTemplate
metadata: {name: small, namespace: NAMESPACE}
spec: {template: {spec: {kubeadmConfigSpec: {clusterConfiguration: {apiServer: {certSANs: [localhost]}}}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevMachineTemplate
metadata: {name: small, namespace: NAMESPACE}
spec: {template: {spec: {backend: {inMemory: {}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: small, namespace: NAMESPACE}
spec:
  infrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevClusterTemplate, name: small}}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: small}
    machineInfrastructure: {templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DevMachineTemplate, name: small}}
`

// TestAClassThatAnotherNamespaceUses checks a run's ClusterClass that a Cluster of another namespace starts to use.
// Neither a rollback of the run nor the deletion of a cluster by a user who may not read that Cluster deletes the class
// or its templates.
func TestAClassThatAnotherNamespaceUses(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	side := shared.blue
	const namespace, elsewhere = "class-here", "class-elsewhere"
	for _, name := range []string{namespace, elsewhere} {
		harness.Must(t, side.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	manifests := strings.ReplaceAll(smallClass, "NAMESPACE", namespace)
	harness.Must(t, os.WriteFile(path("class.yaml"), []byte(manifests), 0o600))
	class := object("cluster.x-k8s.io/v1beta2", "ClusterClass", namespace, "small")
	all := []*unstructured.Unstructured{
		class,
		object("infrastructure.cluster.x-k8s.io/v1beta2", "DevClusterTemplate", namespace, "small"),
		object("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlaneTemplate", namespace, "small"),
		object("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", namespace, "small"),
	}
	there := func(want bool) {
		t.Helper()
		for _, o := range all {
			err := side.Client().Get(ctx, client.ObjectKeyFromObject(o), o)
			harness.Must(t, client.IgnoreNotFound(err))
			if got := err == nil && o.GetDeletionTimestamp() == nil; got != want {
				t.Errorf("%s %s exists: %t", o.GetKind(), o.GetName(), got)
			}
		}
	}

	s := newSession(t, "workload-create", "")
	harness.Must(t, os.WriteFile(s.manifest, fmt.Appendf(nil, `apiVersion: scute.dev/v1alpha1
kind: WorkflowRun
metadata: {name: rolls-back, namespace: runs}
spec:
  failurePolicy: Rollback
  tasks:
  - {name: class, kind: Apply, with: {files: [%q], wait: false}}
  - {name: fails, kind: Exec, needs: [class], with: {command: [sh, -c, "until [ -e %s ]; do sleep 0.1; done; false"]}}
`, path("class.yaml"), path("fail")), 0o600))
	s.program = shared.ctl
	s.args = []string{"run", "--local", "-f", s.manifest, "--log", s.log(), "--kubeconfig", side.KubeconfigPath()}
	p := s.start()
	user := object("cluster.x-k8s.io/v1beta2", "Cluster", elsewhere, "user")
	user.Object["spec"] = map[string]any{"paused": true, "topology": map[string]any{"version": "v1.36.0", "classRef": map[string]any{"name": "small", "namespace": namespace}}}
	harness.Await(ctx, t, "another namespace uses the class", func() string {
		if err := side.Client().Create(ctx, user.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		if err := side.Client().Get(ctx, client.ObjectKeyFromObject(class), class); err != nil {
			return err.Error()
		}
		if err := side.Client().Delete(ctx, class, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Sprint("its deletion is not denied: ", err)
		}
		return ""
	})
	harness.Must(t, os.WriteFile(path("fail"), nil, 0o600))
	s.end(ctx, p, 1)
	if !strings.Contains(s.said(), "RollbackFailed") || !strings.Contains(s.said(), "class-here/small stay too, for the Clusters that use it") {
		t.Errorf("want a failed rollback that names the class:\n%s", s.said())
	}
	there(true)

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "limited"}}
	harness.Must(t, side.Client().Create(ctx, account))
	harness.Must(t, side.Client().Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "limited"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "limited"}},
	}))
	_, kubeconfig, err := side.ServiceAccountConfig(ctx, namespace, "limited")
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(path("limited.kubeconfig"), kubeconfig, 0o600))
	harness.Must(t, os.WriteFile(path("template.yaml"), []byte(manifests+"---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: \"${CLUSTER_NAME}\"}\n"), 0o600))
	for _, stays := range []bool{true, false} {
		if !stays {
			harness.Must(t, side.Client().Delete(ctx, user))
			// No controller does, because it is paused.
			harness.Must(t, client.IgnoreNotFound(side.Client().Patch(ctx, user, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
			harness.Await(ctx, t, "the class may be deleted", func() string {
				if err := side.Client().Delete(ctx, class, client.DryRunAll); err != nil {
					return err.Error()
				}
				return ""
			})
		}
		s := newSession(t, "workload-delete", "cluster: {namespace: "+namespace+", name: one, version: v1.36.0, template: {file: "+path("template.yaml")+"}}\n")
		s.program = shared.ctl
		s.args = []string{"run", "--local", "-f", s.manifest, "--log", s.log(), "--kubeconfig", path("limited.kubeconfig")}
		s.run(ctx, 0)
		there(stays)
		if stays && !strings.Contains(s.said(), "keeping ClusterClass "+namespace+"/small with its templates: Clusters of namespaces that cannot be listed may use it") {
			t.Errorf("output lacks the reason why the class stays:\n%s", s.said())
		}
	}
}
