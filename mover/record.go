package mover

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
)

// IsRecord reports whether an object is a ClusterResourceSetBinding. The controllers of all
// ClusterResourceSets that select a Cluster write to the binding, even while the Cluster is paused,
// and on the target as soon as the Cluster exists there. Two bindings therefore count as equal if
// they list the same ClusterResourceSets.
func IsRecord(ref object.Ref) bool {
	return ref.Group == object.AddonsGroup && ref.Kind == "ClusterResourceSetBinding"
}

// MergedRecord returns the entries of the binding have, and those entries of want whose
// ClusterResourceSets have does not list. missing reports whether there are such entries.
func MergedRecord(want, have *unstructured.Unstructured) (parts []any, missing bool) {
	parts = bindingsOf(have)
	known := setNamesOf(have)
	for _, part := range bindingsOf(want) {
		if !slices.Contains(known, setNameOf(part)) {
			parts, missing = append(parts, part), true
		}
	}
	return parts, missing
}

func bindingsOf(u *unstructured.Unstructured) []any {
	parts, _, _ := unstructured.NestedSlice(u.Object, "spec", "bindings")
	return parts
}

func setNamesOf(u *unstructured.Unstructured) []string {
	var names []string
	for _, part := range bindingsOf(u) {
		names = append(names, setNameOf(part))
	}
	slices.Sort(names)
	return names
}

func setNameOf(part any) string {
	fields, _ := part.(map[string]any)
	name, _ := fields["clusterResourceSetName"].(string)
	return name
}
