package object

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TrueSince returns when a condition became True, or nil if it is not True or the time is unknown.
func TrueSince(u *unstructured.Unstructured, conditionType string) *metav1.Time {
	c := condition(u, conditionType)
	text, _ := c["lastTransitionTime"].(string)
	at, err := time.Parse(time.RFC3339, text)
	if c["status"] != string(True) || err != nil || at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at}
}

// WithoutCondition returns a copy of the status without one condition, or nil if there is no
// status.
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
		// This cannot fail: the list was found at the path.
		_ = unstructured.SetNestedSlice(status, list, path...)
	}
	return status
}

// StatusLag returns a message if the status was written for another generation of the spec, and ""
// otherwise. It returns "" for an object without status.observedGeneration.
func StatusLag(u *unstructured.Unstructured) string {
	observed, found, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if !found || err != nil || observed == u.GetGeneration() {
		return ""
	}
	return fmt.Sprintf("the status is for generation %d, but the spec has generation %d", observed, u.GetGeneration())
}

// ConditionLag returns a message if a condition was written for another generation of the spec, and
// "" otherwise. It prefers the observedGeneration of the condition, because some controllers update
// status.observedGeneration only after a success.
func ConditionLag(u *unstructured.Unstructured, conditionType string) string {
	c := condition(u, conditionType)
	if c == nil {
		return StatusLag(u)
	}
	observed, found, err := unstructured.NestedInt64(c, "observedGeneration")
	switch {
	case !found || err != nil || observed == 0:
		return StatusLag(u)
	case observed == u.GetGeneration():
		return ""
	default:
		return fmt.Sprintf("condition %s is for generation %d, but the spec has generation %d", conditionType, observed, u.GetGeneration())
	}
}

// UntrueConditions returns a message for each condition that is not True, or was written for
// another generation of the spec.
func UntrueConditions(u *unstructured.Unstructured, conditionTypes ...string) []string {
	ref := Observe(u).Ref
	var why []string
	for _, t := range conditionTypes {
		status, reason, message := Condition(u, t)
		switch lag := ConditionLag(u, t); {
		case status == Absent:
			why = append(why, fmt.Sprintf("%s has no condition %s yet", ref, t))
		case lag != "":
			why = append(why, fmt.Sprintf("%s: %s", ref, lag))
		case status != True:
			why = append(why, fmt.Sprintf("%s: %s is %s (%s): %s", ref, t, status, reason, strings.Join(strings.Fields(message), " ")))
		}
	}
	return why
}
