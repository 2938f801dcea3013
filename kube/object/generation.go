package object

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StatusLag returns a message if an object's status was made for another generation of its spec. It returns "" if not, or if the object does not
// report status.observedGeneration.
func StatusLag(u *unstructured.Unstructured) string {
	observed, found, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if !found || err != nil || observed == u.GetGeneration() {
		return ""
	}
	return fmt.Sprintf("the status is for generation %d, but the spec has generation %d", observed, u.GetGeneration())
}

// ConditionLag returns a message if a condition was made for another generation of the spec. It reads the condition's own observedGeneration if there
// is one, because some controllers update status.observedGeneration only after a success.
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

// UntrueConditions returns a message for each of the conditions that is not True, or was made for another generation of the spec.
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
