package diagnose

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/redact"
)

// secretField says whether a field of an object holds a secret, or may well hold one (the content of a file).
func secretField(name string) bool {
	return redact.Name(name) || name == "content" || strings.Contains(strings.ToLower(name), "kubeconfig")
}

// wholeObject is a length of an annotation of a Secret that leaves no room for a copy of the Secret.
const wholeObject = 40

// redacted is an object without what is nobody's business: the content of Secrets, and what looks like a secret
// elsewhere.
func redacted(u *unstructured.Unstructured) map[string]any {
	o := u.DeepCopy().Object
	unstructured.RemoveNestedField(o, "metadata", "managedFields")
	// It repeats the whole object, in the case of a Secret too.
	unstructured.RemoveNestedField(o, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if u.GetKind() == "Secret" && u.GroupVersionKind().Group == "" {
		for _, part := range []string{"data", "stringData"} {
			data, ok := o[part].(map[string]any)
			if !ok {
				continue
			}
			for key, value := range data {
				text, _ := value.(string)
				data[key] = fmt.Sprintf("%s, %d characters", redact.Removed, len(text))
			}
		}
		annotations, _, _ := unstructured.NestedStringMap(o, "metadata", "annotations")
		for key, value := range annotations {
			if len(value) > wholeObject { // a tool keeps a copy of the whole object in it, as kubectl does
				_ = unstructured.SetNestedField(o, redact.Removed, "metadata", "annotations", key)
			}
		}
	}
	clean, _ := redactValue("", o).(map[string]any)
	return clean
}

func redactValue(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		// An environment variable, a header: the name is beside the value.
		if n, ok := v["name"].(string); ok {
			if _, ok := v["value"].(string); ok && (redact.Name(n) || strings.Contains(strings.ToLower(n), "secret") || strings.Contains(strings.ToLower(n), "token")) {
				v["value"] = redact.Removed
			}
		}
		for key, value := range v {
			v[key] = redactValue(key, value)
		}
		return v
	case []any:
		for i, value := range v {
			v[i] = redactValue(name, value)
		}
		return v
	case string:
		switch {
		case strings.HasPrefix(v, redact.Removed):
			return v
		case secretField(name) && v != "":
			return redact.Removed
		}
		return redact.Message(v)
	default:
		return v
	}
}
