package e2e

import "fmt"

// configMap returns the manifest of a ConfigMap. It is ready as soon as it exists.
func configMap(name, value string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {v: %q}}`, name, value)
}

// pod returns the manifest of a Pod that the stage's kubelet makes ready or crashing; "" leaves it Pending.
func pod(name, becomes string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {becomes: %q}}, spec: {containers: [{name: c, image: none}]}}`, name, becomes)
}

// apply returns a task with further fields.
func apply(name, manifest, more string) string {
	return fmt.Sprintf("- {name: %s, kind: Apply, with: {manifests: [%s]}%s}\n", name, manifest, more)
}
