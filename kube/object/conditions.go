package object

import (
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
