package transfer

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
)

// collision completes why an object of the target is not the one that moves with what made it, and returns what to do. A controller there
// would make it again in each attempt, once what it makes it for is copied, so deleting it alone does not help.
func (t *Transfer) collision(why string, have *unstructured.Unstructured) (what, remedy string) {
	o := object.Observe(have)
	of := o.Pool
	for _, owner := range o.Owners {
		if of == nil && (strings.HasSuffix(owner.Ref.Kind, "Pool") || owner.Controller != nil && *owner.Controller) {
			of = &owner.Ref
		}
	}
	if of == nil {
		return why, "rename or remove one of the two, then " + t.again() + "; if it is left over from an earlier attempt, delete it on the target"
	}
	what = why + "; the controller of " + of.String() + " made it there"
	first := slices.MinFunc(append(have.GetManagedFields(), metav1.ManagedFieldsEntry{}), func(a, b metav1.ManagedFieldsEntry) int {
		switch {
		case b.Time == nil:
			return -1
		case a.Time == nil:
			return 1
		}
		return a.Time.Compare(b.Time.Time)
	})
	if first.Manager != "" {
		what += fmt.Sprintf(" (field manager %q)", first.Manager)
	}
	return what, "scale the controller of " + of.GroupKind() + " on the target to 0, or it makes the object again in each attempt; delete " + o.Ref.Short() +
		" there, " + t.again() + ", and scale the controller up when all copies are created"
}
