package run

import (
	"fmt"
	"maps"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// removeBadDurations removes the invalid durations from a value of a manifest, and returns a problem for each. The decoder would stop at the first
// invalid duration, without its path.
func removeBadDurations(v any, path string) (problems []workflow.Problem) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			problems = append(problems, removeBadDurations(v[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "with", "undo", "params": // the kinds check these
			case "timeout", "totalTimeout", "deadline", "delay", "maxDelay":
				if !isDuration(v[key]) {
					problems = append(problems, workflow.Problem{Field: path + "." + key, Message: fmt.Sprintf("%v is not a duration", v[key]), Remedy: "write one like 90s, 5m or 1h30m"})
					delete(v, key)
				}
			default:
				problems = append(problems, removeBadDurations(v[key], path+"."+key)...)
			}
		}
	}
	return problems
}

func isDuration(v any) bool {
	text, ok := v.(string)
	if !ok {
		return v == nil
	}
	_, err := v1alpha1.ParseDuration(text)
	return err == nil
}
