package object

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Conditions returns the conditions of an object of any provider: status.conditions, and status.v1beta2.conditions, where an API of the contract
// v1beta1 has the newer ones. It skips malformed entries.
func Conditions(o *unstructured.Unstructured) []metav1.Condition {
	var found []metav1.Condition
	for _, path := range [][]string{{"status", "conditions"}, {"status", "v1beta2", "conditions"}} {
		list, _, err := unstructured.NestedSlice(o.Object, path...)
		if err != nil {
			continue
		}
		for _, item := range list {
			fields, ok := item.(map[string]any)
			if !ok {
				continue
			}
			// text returns "" for a field of another type.
			text := func(field string) string { s, _, _ := unstructured.NestedString(fields, field); return s }
			c := metav1.Condition{Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason")}
			if at, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
				c.LastTransitionTime = metav1.NewTime(at)
			}
			found = append(found, c)
		}
	}
	return found
}

// WithoutCondition returns a copy of the object's status without one condition, or nil if the object has no status.
func WithoutCondition(u *unstructured.Unstructured, conditionType string) map[string]any {
	status, found, err := unstructured.NestedMap(u.Object, "status")
	if !found || err != nil {
		return nil
	}
	for _, path := range [][]string{{"conditions"}, {"v1beta2", "conditions"}} {
		list, found, err := unstructured.NestedSlice(status, path...)
		if !found || err != nil {
			continue
		}
		list = slices.DeleteFunc(list, func(item any) bool {
			c, is := item.(map[string]any)
			return is && c["type"] == conditionType
		})
		// This cannot fail, because the list was found at the path.
		_ = unstructured.SetNestedSlice(status, list, path...)
	}
	return status
}
