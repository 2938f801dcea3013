package api

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeobject "scute.dev/kube/object"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestGuardedMachine checks which clients may delete which machines under the chart's policy.
func TestGuardedMachine(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	const namespace = "guarded"
	files, err := scuted.Render(filepath.Join("..", "..", "charts", "scute"))
	harness.Must(t, err)
	for _, manifest := range strings.Split(files["scute/templates/guard.yaml"], "\n---\n") {
		u := &unstructured.Unstructured{}
		harness.Must(t, utilyaml.Unmarshal([]byte(manifest), &u.Object))
		harness.Must(t, client.IgnoreAlreadyExists(admin().Create(ctx, u))) // another test may have installed the chart
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "controller"}
	harness.Must(t, admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	harness.Must(t, admin().Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
	harness.Must(t, admin().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: meta.Name}},
	}))
	config, _, err := bed.Side("one").ServiceAccountConfig(ctx, namespace, meta.Name)
	harness.Must(t, err)
	controller, err := client.New(config, client.Options{Scheme: admin().Scheme()})
	harness.Must(t, err)

	const why = "2 of the 3 members of etcd answer"
	machine := func(name string, annotations map[string]string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}
		m.Spec.Bootstrap.DataSecretName = new("none")
		m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "DevMachine", Name: name}
		harness.Must(t, admin().Create(ctx, m))
		return m
	}
	needed := machine("needed", map[string]string{kubeobject.NeededAnnotation: why})
	deletes := func(c client.Client, m *clusterv1.Machine) error { return c.Delete(ctx, m, client.DryRunAll) }
	wait(ctx, t, "people may not delete what etcd needs", func() error {
		switch err := deletes(admin(), needed); {
		case err == nil:
			return errors.New("it may be deleted")
		case !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "kubectl -n guarded annotate machine needed scute.dev/delete-anyway=yes"):
			t.Fatal(err)
		}
		return nil
	})
	for what, err := range map[string]error{
		"a controller":                      deletes(controller, needed),
		"a machine that etcd can spare":     deletes(admin(), machine("spare", nil)),
		"one that is deleted all the same":  deletes(admin(), machine("anyway", map[string]string{kubeobject.NeededAnnotation: why, kubeobject.OwnPrefix + "delete-anyway": "yes"})),
		"one that was moved to another one": deletes(admin(), machine("moved", map[string]string{kubeobject.NeededAnnotation: why, kubeobject.DeleteForMoveAnnotation: ""})),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
