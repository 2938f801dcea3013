package object

import (
	"cmp"
	"fmt"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ref names an object in one cluster. It contains no version and no UID, so that an object keeps
// its Ref when it is moved and when its API version changes.
type Ref struct {
	Group     string
	Kind      string
	Namespace string // empty for a cluster-scoped object
	Name      string
}

// RefOf returns the Ref of an object.
func RefOf(u *unstructured.Unstructured) Ref {
	gvk := u.GroupVersionKind()
	return Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// GroupKind returns "Kind.group", or "Kind" for the core group, as kubectl prints it.
func (r Ref) GroupKind() string {
	if r.Group == "" {
		return r.Kind
	}
	return r.Kind + "." + r.Group
}

// String returns "Machine.cluster.x-k8s.io fleet/prod-abc", for messages.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.GroupKind() + " " + r.Name
	}
	return r.GroupKind() + " " + r.Namespace + "/" + r.Name
}

// Short returns the Ref without group and namespace: "Machine prod-abc".
func (r Ref) Short() string { return r.Kind + " " + r.Name }

// MarshalText returns "Kind.group/namespace/name", so that a Ref can be a key in an event.
func (r Ref) MarshalText() ([]byte, error) {
	return []byte(r.GroupKind() + "/" + r.Namespace + "/" + r.Name), nil
}

// UnmarshalText decodes a text from MarshalText. The strings that many Refs of a plan have in
// common are stored only once.
func (r *Ref) UnmarshalText(text []byte) error {
	parts := strings.SplitN(string(text), "/", 3)
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return fmt.Errorf("object reference %q is not Kind.group/namespace/name", text)
	}
	kind, group, _ := strings.Cut(parts[0], ".")
	*r = Ref{Group: intern(group), Kind: intern(kind), Namespace: intern(parts[1]), Name: strings.Clone(parts[2])}
	return nil
}

func intern(s string) string { return unique.Make(s).Value() }

// Compare orders Refs by group, kind, namespace and name.
func Compare(a, b Ref) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}
