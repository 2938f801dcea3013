package e2e

import "fmt"

// configMap is a manifest; it is ready as soon as it is there.
func configMap(name, value string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {v: %q}}`, name, value)
}

// pod is a manifest of a Pod that the stage's kubelet lets become ready or crash; "" leaves it Pending forever.
func pod(name, becomes string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {becomes: %q}}, spec: {containers: [{name: c, image: none}]}}`, name, becomes)
}

// apply is a task; more are further fields of it.
func apply(name, manifest, more string) string {
	return fmt.Sprintf("- {name: %s, kind: Apply, with: {manifests: [%s]}%s}\n", name, manifest, more)
}
