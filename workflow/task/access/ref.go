package access

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"scute.dev/kube/object"
	"scute.dev/workflow"
)

// ObjectRef names one object of a cluster.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace defaults to the run's; it is left out for a kind of the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// RefOf names an object.
func RefOf(u *unstructured.Unstructured) ObjectRef {
	return ObjectRef{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// GVK is the kind of the object.
func (r ObjectRef) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// String is for people: "Machine.cluster.x-k8s.io fleet/prod-abc".
func (r ObjectRef) String() string { return r.Plain().String() }

// Plain is the reference without the version: an object keeps it over an upgrade of its kind.
func (r ObjectRef) Plain() object.Ref {
	gvk := r.GVK()
	return object.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: r.Namespace, Name: r.Name}
}

func (r ObjectRef) is(group, kind string) bool { return r.Kind == kind && r.GVK().Group == group }

// IsSecret says whether the object is a Secret, in any spelling: it is asked before an API server can refuse another one.
func (r ObjectRef) IsSecret() bool { return strings.EqualFold(r.Kind, "Secret") && r.GVK().Group == "" }

// IsDefinition says whether the object defines a kind.
func (r ObjectRef) IsDefinition() bool {
	return r.is("apiextensions.k8s.io", "CustomResourceDefinition")
}

// IsNamespace says whether the object is a namespace.
func (r ObjectRef) IsNamespace() bool { return r.is("", "Namespace") }

// Check finds what a reference of the inputs lacks.
func (r ObjectRef) Check(field string) (problems []workflow.Problem) {
	for _, f := range []struct{ name, value string }{{"apiVersion", r.APIVersion}, {"kind", r.Kind}, {"name", r.Name}} {
		if f.value == "" {
			problems = append(problems, workflow.Problem{Field: field + "." + f.name, Message: "it is empty", Remedy: "give apiVersion, kind and name of the object"})
		}
	}
	return problems
}

// CompareRefs orders references.
func CompareRefs(a, b ObjectRef) int {
	return cmp.Or(object.Compare(a.Plain(), b.Plain()), cmp.Compare(a.APIVersion, b.APIVersion))
}
