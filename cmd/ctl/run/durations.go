package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/document"
	"scute.dev/workflow"
)

// withoutBadDurations returns a manifest without its invalid durations, and a problem for each. The decoder would stop at the
// first invalid duration, without its path.
func withoutBadDurations(text []byte) ([]byte, []workflow.Problem) {
	var manifest map[string]any
	if err := document.Unmarshal(text, &manifest); err != nil {
		return text, nil
	}
	var problems []workflow.Problem
	walk(manifest["spec"], "spec", &problems)
	if len(problems) == 0 {
		return text, nil
	}
	mended, err := json.Marshal(manifest)
	if err != nil {
		return text, problems
	}
	return mended, problems
}

func walk(v any, path string, problems *[]workflow.Problem) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			walk(v[i], path+"["+strconv.Itoa(i)+"]", problems)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			switch key {
			case "with", "undo", "params": // the kinds check these
			case "timeout", "totalTimeout", "deadline", "delay", "maxDelay":
				if !duration(v[key]) {
					*problems = append(*problems, workflow.Problem{Field: path + "." + key, Message: fmt.Sprintf("%v is not a duration", v[key]), Remedy: "write one like 90s, 5m or 1h30m"})
					delete(v, key)
				}
			default:
				walk(v[key], path+"."+key, problems)
			}
		}
	}
}

func duration(v any) bool {
	text, ok := v.(string)
	if !ok {
		return v == nil
	}
	_, err := v1alpha1.ParseDuration(text)
	return err == nil
}
