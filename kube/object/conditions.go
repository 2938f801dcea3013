package object

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Conditions are those of an object of any provider: an API of the contract v1beta1 has the newer ones elsewhere. What is no
// condition is left out.
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
			// What is of another type is read as "".
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

// WithoutCondition is a copy of the status of an object that lacks one condition; nil if the object has no status.
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
		// It was found there: it can be set.
		_ = unstructured.SetNestedSlice(status, list, path...)
	}
	return status
}
