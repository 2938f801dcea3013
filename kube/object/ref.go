package object

import (
	"cmp"
	"fmt"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ref names an object in one cluster. Without a version and a UID, it stays the same when the
// object is moved or its API version changes.
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

// String returns for example "Machine.cluster.x-k8s.io fleet/prod-abc".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.GroupKind() + " " + r.Name
	}
	return r.GroupKind() + " " + r.Namespace + "/" + r.Name
}

// Short returns for example "Machine prod-abc".
func (r Ref) Short() string { return r.Kind + " " + r.Name }

// MarshalText returns "Kind.group/namespace/name", so that a Ref can be a key in JSON.
func (r Ref) MarshalText() ([]byte, error) {
	return []byte(r.GroupKind() + "/" + r.Namespace + "/" + r.Name), nil
}

// UnmarshalText decodes the text of MarshalText. Strings that many Refs share are stored once.
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
