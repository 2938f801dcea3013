package remediation

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
)

// anotherKind checks that control planes of unsupported providers are not changed, and that the request of each has the
// reason and the next step.
func anotherKind(ctx context.Context, t *testing.T) {
	namespace := namespaceOf(t)
	harness.Must(t, shared.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	next := map[string]string{
		"RKE2ControlPlane":    "check that etcd keeps its quorum without the machine, then replace it by hand",
		"KThreesControlPlane": "create a MachineHealthCheck without a templateRef that selects the machine",
		"TalosControlPlane":   "check that etcd keeps its quorum without the machine, then replace it by hand",
	}
	for kind := range next {
		strangeMachine(ctx, t, namespace, kind)
	}
	policy(ctx, t, namespace, nil)
	for kind, next := range next {
		name := strings.ToLower(kind)
		request := &v1alpha1.SurgeRemediation{}
		harness.Await(ctx, t, "it is said why a machine of a "+kind+" is not replaced", func() string {
			request = &v1alpha1.SurgeRemediation{}
			err := shared.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, request)
			harness.Must(t, client.IgnoreNotFound(err))
			if request.Status.Phase != v1alpha1.RemediationFailed {
				return "the phase is " + string(request.Status.Phase)
			}
			return ""
		})
		status := request.Status
		if status.Decision != "CannotRemediate" || !strings.Contains(status.Message, "scute only marks machines of a "+kind+": scute cannot ask etcd on its machines") || !strings.Contains(status.Next, next) {
			t.Errorf("status = %+v, want CannotRemediate with the reason", status)
		}
		out := string(scutectl(ctx, t, "describe", "remediation", name, "-n", namespace))
		t.Logf("\n%s", out)
		if !strings.Contains(out, "CannotRemediate") || !strings.Contains(out, "scute only marks machines") {
			t.Errorf("scutectl does not print why a machine of a %s is not replaced", kind)
		}
		m := &clusterv1.Machine{}
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m))
		owned := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
		if m.Annotations[v1alpha1.UnhealthyAnnotation] == "" || m.Annotations[clusterv1.DeleteMachineAnnotation] != "" || owned != nil || m.DeletionTimestamp != nil {
			t.Errorf("Machine of a %s: annotations %v, OwnerRemediated %v, deleted at %v", kind, m.Annotations, owned, m.DeletionTimestamp)
		}
	}
}

// strangeMachine creates a Cluster with a control plane of a kind without a controller, and one machine that an
// operator wants to replace.
func strangeMachine(ctx context.Context, t *testing.T, namespace, kind string) {
	t.Helper()
	kinds := schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: kind}
	serve(ctx, t, kinds)
	name := strings.ToLower(kind)
	plane := &unstructured.Unstructured{}
	plane.SetGroupVersionKind(kinds)
	plane.SetNamespace(namespace)
	plane.SetName(name)
	harness.Await(ctx, t, "a "+kind+" can be created", func() string {
		if err := shared.admin.Create(ctx, plane); err != nil {
			return err.Error()
		}
		return ""
	})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: kinds.Group, Kind: kind, Name: name}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: clusterv1.GroupVersionInfrastructure.Group, Kind: "DevCluster", Name: name}
	harness.Must(t, shared.admin.Create(ctx, cluster))
	yes, secret := true, "none"
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:          map[string]string{clusterv1.ClusterNameLabel: name, clusterv1.MachineControlPlaneLabel: ""},
		Annotations:     map[string]string{clusterv1.RemediateMachineAnnotation: ""},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: kinds.GroupVersion().String(), Kind: kind, Name: name, UID: plane.GetUID(), Controller: &yes}},
	}}
	m.Spec.ClusterName, m.Spec.Version, m.Spec.Bootstrap.DataSecretName = name, "v1.36.0", &secret
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: clusterv1.GroupVersionInfrastructure.Group, Kind: "DevMachine", Name: name}
	harness.Must(t, shared.admin.Create(ctx, m))
}

// serve makes the API server serve a kind, with the label for its contract.
func serve(ctx context.Context, t *testing.T, kind schema.GroupVersionKind) {
	t.Helper()
	plural, open := strings.ToLower(kind.Kind)+"s", true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group, Labels: map[string]string{"cluster.x-k8s.io/v1beta1": kind.Version}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, ListKind: kind.Kind + "List", Plural: plural, Singular: strings.ToLower(kind.Kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}},
			}},
		},
	}
	harness.Must(t, shared.side.Client().Create(ctx, crd))
}
