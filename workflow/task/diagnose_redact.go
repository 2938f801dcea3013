package task

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/redact"
)

const removed = "(removed)"

// secretWord finds what follows a telling name in a line: token=..., password: ...
func secretWord() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b([\w.-]*(?:token|password|passwd|secret|api[-_]?key|private[-_]?key|credentials?)[\w-]*["']?\s*[:=]\s*)("[^"]*"|'[^']*'|\S+)`)
}

// secretName says whether a field of that name holds a secret, or may well hold one (the content of a file).
func secretName(name string) bool {
	if strings.HasSuffix(name, "Token") {
		return true
	}
	name = strings.ToLower(name)
	for _, part := range []string{"password", "passwd", "privatekey", "private-key", "client-key-data", "apikey", "api-key", "kubeconfig"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "token" || strings.HasSuffix(name, "-token") || strings.HasSuffix(name, "_token") || name == "content" || name == "credentials"
}

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
				data[key] = fmt.Sprintf("%s, %d characters", removed, len(text))
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
			if _, ok := v["value"].(string); ok && (secretName(n) || strings.Contains(strings.ToLower(n), "secret") || strings.Contains(strings.ToLower(n), "token")) {
				v["value"] = removed
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
		case strings.HasPrefix(v, removed):
			return v
		case secretName(name) && v != "":
			return removed
		}
		return secretWord().ReplaceAllString(redact.Message(v), "${1}"+removed)
	default:
		return v
	}
}
