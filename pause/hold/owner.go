package hold

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is the field manager that set a field; empty if the server does not know. The path is in the notation of
// managedFields: "f:spec", "f:paused".
func Owner(u *unstructured.Unstructured, path ...string) string {
	for _, entry := range u.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		if owns(fields, path) {
			return entry.Manager
		}
	}
	return ""
}

func owns(fields map[string]any, path []string) bool {
	for i, step := range path {
		next, ok := fields[step]
		if !ok {
			return false
		}
		if i == len(path)-1 {
			return true
		}
		if fields, ok = next.(map[string]any); !ok {
			return false
		}
	}
	return false
}
