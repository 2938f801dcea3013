package access

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"scute.dev/kube/object"
	"scute.dev/workflow/task"
)

// ObjectRef is a reference to an object of a cluster.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace defaults to the run's; it is ignored for a cluster-scoped kind.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// RefOf returns the reference to an object.
func RefOf(u *unstructured.Unstructured) ObjectRef {
	return ObjectRef{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// GVK returns the kind of the object.
func (r ObjectRef) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

func (r ObjectRef) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.GVK())
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	return u
}

// String returns the reference for messages: "Machine.cluster.x-k8s.io fleet/prod-abc".
func (r ObjectRef) String() string { return r.Ref().String() }

// Ref returns the reference without the version, which may change with an upgrade.
func (r ObjectRef) Ref() object.Ref {
	gvk := r.GVK()
	return object.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: r.Namespace, Name: r.Name}
}

func (r ObjectRef) isKind(group, kind string) bool { return r.Kind == kind && r.GVK().Group == group }

// IsSecret ignores case, because it is called before an API server can reject another spelling.
func (r ObjectRef) IsSecret() bool { return strings.EqualFold(r.Kind, "Secret") && r.GVK().Group == "" }

// IsDefinition reports whether the object is a CustomResourceDefinition.
func (r ObjectRef) IsDefinition() bool {
	return r.isKind("apiextensions.k8s.io", "CustomResourceDefinition")
}

// IsNamespace reports whether the object is a Namespace.
func (r ObjectRef) IsNamespace() bool { return r.isKind("", "Namespace") }

// Check returns a problem for each missing field.
func (r ObjectRef) Check(field string) (problems task.Problems) {
	for _, f := range []struct{ name, value string }{{"apiVersion", r.APIVersion}, {"kind", r.Kind}, {"name", r.Name}} {
		if f.value == "" {
			problems.Add(field+"."+f.name, "it is empty", "set apiVersion, kind and name of the object")
		}
	}
	return problems
}

// CompareRefs compares references for sorting.
func CompareRefs(a, b ObjectRef) int {
	return cmp.Or(object.Compare(a.Ref(), b.Ref()), cmp.Compare(a.APIVersion, b.APIVersion))
}
