package diagnose

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/redact"
)

// isSecretField reports whether a field may contain a secret, as the content of a file can.
func isSecretField(name string) bool {
	return redact.IsSecretName(name) || name == "content" || strings.Contains(strings.ToLower(name), "kubeconfig")
}

// maxSecretAnnotation is the maximum length of an annotation of a Secret that is kept. A longer
// annotation may contain a copy of the Secret.
const maxSecretAnnotation = 40

// redactObject removes the content of Secrets and all values that look like secrets.
func redactObject(u *unstructured.Unstructured) map[string]any {
	o := u.DeepCopy().Object
	unstructured.RemoveNestedField(o, "metadata", "managedFields")
	// This annotation repeats the whole object, including the content of a Secret.
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
			if len(value) > maxSecretAnnotation { // it may contain a copy of the whole object, as kubectl's does
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
		// An environment variable or a header has its name beside the value.
		if n, ok := v["name"].(string); ok {
			if _, ok := v["value"].(string); ok && (redact.IsSecretName(n) || strings.Contains(strings.ToLower(n), "secret") || strings.Contains(strings.ToLower(n), "token")) {
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
		case isSecretField(name) && v != "":
			return redact.Removed
		}
		return redact.Message(v)
	default:
		return v
	}
}
