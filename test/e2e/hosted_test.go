package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestHostedControlPlane moves a Cluster whose hosted control plane owns workloads of the management cluster. The
// garbage collector of the real kube-controller-manager deletes them after such a move, so the move is refused. With
// the user's consent it warns about each object that will be lost.
func TestHostedControlPlane(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	const ns = "hosted"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	harness.Must(t, shared.green.Side.Client().Create(ctx, namespace(ns)))
	for _, side := range []*scuted.Installation{shared.blue, shared.green} {
		defines(ctx, t, side, hostedDefinition())
	}
	controlPlane, set, service := hostedControlPlane(ctx, t, ns)
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	before := contents(objects(ctx, t, shared.blue, ns))
	trail := auditTrail(t, shared.blue)
	over := move(ctx, t, shared.blue, scuted.NewMove(ns, "refused", shared.green, "tiny"))
	isRefused(t, over, []v1alpha1.MoveFinding{
		finding("K0smotronControlPlane.controlplane.cluster.x-k8s.io hosted/tiny", "hosted control plane", "K0smotronControlPlane.controlplane.cluster.x-k8s.io to spec.acceptLoss"),
		finding("StatefulSet.apps hosted/kmc-tiny-etcd", "the garbage collector would delete it and its 1 dependent", "StatefulSet.apps to spec.acceptLoss"),
	})
	trail.unchanged(t, ofDaemon)
	sameContents(t, before, contents(objects(ctx, t, shared.blue, ns)))

	m := scuted.NewMove(ns, "accepted", shared.green, "tiny")
	m.Spec.AcceptLoss = []string{"K0smotronControlPlane.controlplane.cluster.x-k8s.io", "StatefulSet.apps"}
	harness.Must(t, shared.blue.Create(ctx, m))
	begun, err := shared.blue.Wait(ctx, ns, m.Name, func(m *v1alpha1.Move) bool { return len(m.Status.Findings) > 0 || scuted.Over(m) })
	harness.Must(t, err)
	for _, object := range []string{"K0smotronControlPlane.controlplane.cluster.x-k8s.io hosted/tiny", "StatefulSet.apps hosted/kmc-tiny-etcd"} {
		if !slices.ContainsFunc(begun.Status.Findings, func(f v1alpha1.MoveFinding) bool {
			return f.Severity == string(mover.Warning) && f.Field == object && strings.Contains(f.Message, "it will be lost")
		}) {
			t.Errorf("phase %s: no warning about %s: %+v", begun.Status.Phase, object, begun.Status.Findings)
		}
	}
	over, err = shared.blue.Wait(ctx, ns, m.Name, scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	for _, u := range []client.Object{controlPlane, set, service} {
		waitGone(ctx, t, shared.blue, u)
	}
}

// hostedDefinition returns the definition of a hosted control plane that the chart lists, without validation.
func hostedDefinition() *apiextensionsv1.CustomResourceDefinition {
	crd := definition("k0smotroncontrolplanes", "K0smotronControlPlane", apiextensionsv1.NamespaceScoped)
	crd.Spec.Group = "controlplane.cluster.x-k8s.io"
	crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
	return crd
}

// hostedControlPlane creates a control plane of the Cluster tiny that owns a StatefulSet, which owns a Service.
func hostedControlPlane(ctx context.Context, t *testing.T, ns string) (controlPlane *unstructured.Unstructured, set *appsv1.StatefulSet, service *corev1.Service) {
	t.Helper()
	admin := shared.blue.Side.Client()
	cluster := clusterObject("tiny")
	cluster.SetNamespace(ns)
	harness.Must(t, admin.Get(ctx, client.ObjectKeyFromObject(cluster), cluster))
	controlPlane = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}
	controlPlane.SetGroupVersionKind(schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "K0smotronControlPlane"})
	controlPlane.SetNamespace(ns)
	controlPlane.SetName("tiny")
	controlPlane.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "tiny"})
	controlPlane.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: cluster.GetAPIVersion(), Kind: cluster.GetKind(), Name: cluster.GetName(), UID: cluster.GetUID()}})
	harness.Must(t, admin.Create(ctx, controlPlane))
	labels := map[string]string{"app": "kmc-tiny-etcd"}
	set = &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: "kmc-tiny-etcd",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: controlPlane.GetAPIVersion(), Kind: controlPlane.GetKind(), Name: "tiny", UID: controlPlane.GetUID()}},
		},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}}},
		},
	}
	harness.Must(t, admin.Create(ctx, set))
	service = &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: "kmc-tiny-etcd",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID}},
		},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels, Ports: []corev1.ServicePort{{Port: 2379}}},
	}
	harness.Must(t, admin.Create(ctx, service))
	return controlPlane, set, service
}
