package hold

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
)

// Owner is the field manager that set a field; empty if the server does not know. The path is in the notation of
// managedFields: "f:spec", "f:paused".
func Owner(u *unstructured.Unstructured, path ...string) string {
	if managers := owners(u, path...); len(managers) > 0 {
		return managers[0]
	}
	return ""
}

// SetByOthers: somebody else than scute has set the value that a field has, as far as the API server knows: with a server-side apply, or
// after it had been another one. A write that changes nothing leaves no trace. The two names are those under which the API server
// itself keeps what it no longer tells apart.
func SetByOthers(u *unstructured.Unstructured, path ...string) bool {
	return slices.ContainsFunc(owners(u, path...), func(manager string) bool {
		return manager != kube.FieldManager && manager != "ancient-changes" && manager != "before-first-apply"
	})
}

// owners are all field managers that set a field.
func owners(u *unstructured.Unstructured, path ...string) (managers []string) {
	for _, entry := range u.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		if owns(fields, path) {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
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
