package transfer

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// describeCollision returns a description and a remedy for an existing object of the target that is
// not adoptable. The description contains why and the controller that created the object. If there
// is such a controller, deleting the object is not enough, because the controller recreates it in
// each attempt.
func (t *Transfer) describeCollision(why string, have *unstructured.Unstructured) (what, remedy string) {
	o := object.Observe(have)
	of := o.Pool
	for _, owner := range o.Owners {
		if of == nil && (strings.HasSuffix(owner.Ref.Kind, "Pool") || owner.Controller != nil && *owner.Controller) {
			of = &owner.Ref
		}
	}
	if of == nil {
		return why, "rename or delete one of the two objects, then " + t.retryAdvice() + "; if it is left from an earlier attempt, delete it on the target"
	}
	return why + "; the controller of " + of.String() + " created it on the target",
		"scale the controller of " + of.GroupKind() + " on the target to 0, because it recreates the object in each attempt; delete " + o.Ref.Short() +
			" on the target, " + t.retryAdvice() + ", and scale the controller up when all copies are created"
}

// isAdoptable reports whether an existing object of the target, have, may be used instead of the
// copy, want, and if not, why. Their contents must be equal, except for metadata that tools write.
// The original must also stay at the source (kept), or be plain configuration, such as a
// ClusterClass, a template or a Secret. Nothing that represents infrastructure is adoptable.
func isAdoptable(kept bool, ref object.Ref, want, have *unstructured.Unstructured) (bool, string) {
	if mover.IsRecord(ref) {
		// completeRecord adds bindings.
		return object.Observe(want).BoundCluster == object.Observe(have).BoundCluster, "it is bound to another Cluster"
	}
	if !kept && ref.Group != "" && !isClass(ref) && !isTemplate(ref) {
		return false, "scute uses an existing object only if it is a ClusterClass, a template, a ConfigMap or a Secret"
	}
	w := want.DeepCopy()
	labels := w.GetLabels()
	maps.DeleteFunc(labels, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return !strings.HasSuffix(domain, object.CoreGroup)
	})
	// Tools write different names and labels in each cluster, but not labels that Cluster API
	// reads.
	w.Object["metadata"] = map[string]any{}
	w.SetLabels(labels)
	if field, same := mover.Contains(w, have); !same {
		return false, "field " + field + " differs"
	}
	return true, ""
}

func isTemplate(ref object.Ref) bool {
	return strings.HasSuffix(ref.Kind, "Template") && ref.Kind != "Template"
}
