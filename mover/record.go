package mover

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
)

// IsRecord says whether an object is a ClusterResourceSetBinding: the record of what was applied to a Cluster. The controller of
// every ClusterResourceSet that selects the Cluster writes its part of it, whether the Cluster is paused or not, and also on the
// target as soon as the copy of the Cluster is there. So a record is the same if it has the same sets, whatever is said of each.
func IsRecord(ref object.Ref) bool {
	return ref.Group == object.AddonsGroup && ref.Kind == "ClusterResourceSetBinding"
}

// MergedRecord adds to the parts of one record those of another, of sets that it has not. missing says that there are any.
func MergedRecord(want, have *unstructured.Unstructured) (parts []any, missing bool) {
	parts = partsOf(have)
	known := setsOf(have)
	for _, part := range partsOf(want) {
		if !slices.Contains(known, setOf(part)) {
			parts, missing = append(parts, part), true
		}
	}
	return parts, missing
}

// sameRecord compares two records by their sets; have may have more.
func sameRecord(want, have *unstructured.Unstructured) (field string, ok bool) {
	if object.Observe(want).Binds != object.Observe(have).Binds {
		return ".spec.clusterName", false
	}
	_, missing := MergedRecord(want, have)
	return ".spec.bindings", !missing
}

// recordSpec is what of a record's specification identifies it.
func recordSpec(u *unstructured.Unstructured) map[string]any {
	return map[string]any{"clusterName": object.Observe(u).Binds, "bindings": setsOf(u)}
}

func partsOf(u *unstructured.Unstructured) []any {
	parts, _, _ := unstructured.NestedSlice(u.Object, "spec", "bindings")
	return parts
}

func setsOf(u *unstructured.Unstructured) []string {
	var names []string
	for _, part := range partsOf(u) {
		names = append(names, setOf(part))
	}
	slices.Sort(names)
	return names
}

func setOf(part any) string {
	fields, _ := part.(map[string]any)
	name, _ := fields["clusterResourceSetName"].(string)
	return name
}
