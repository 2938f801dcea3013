package object

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StatusLag says that an object's status was made for another spec than the one it has; "" if it was not, or if the object
// does not report status.observedGeneration.
func StatusLag(u *unstructured.Unstructured) string {
	observed, found, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if !found || err != nil || observed == u.GetGeneration() {
		return ""
	}
	return fmt.Sprintf("status is of generation %d, spec is of generation %d", observed, u.GetGeneration())
}

// ConditionLag is StatusLag for one condition: by the condition's own observedGeneration where it has one, because some
// controllers raise that of the status only when all went well.
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
		return fmt.Sprintf("condition %s is of generation %d, spec is of generation %d", conditionType, observed, u.GetGeneration())
	}
}

// Untrue says which conditions of an object are not True, or were made for another spec than it has; nothing if none.
func Untrue(u *unstructured.Unstructured, conditionTypes ...string) []string {
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
