package manifest

import (
	"strings"
	"testing"

	"scute.dev/workflow/lifecycle/provider"
)

func TestRender(t *testing.T) {
	three := 3
	values := variables(provider.Cluster{Namespace: "fleet", Name: "prod", Version: "v1.36.0", ControlPlaneReplicas: &three, Variables: map[string]string{"REGION": "north"}})
	objects, err := render([]byte(`
# a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "${CLUSTER_NAME}", namespace: "${NAMESPACE}"}
data: {version: "${KUBERNETES_VERSION}", nodes: "${CONTROL_PLANE_MACHINE_COUNT}+${WORKER_MACHINE_COUNT}", region: "${REGION}", zone: "${ZONE:=a}"}
---
`), values)
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	data := objects[0].Object["data"].(map[string]any)
	if objects[0].GetName() != "prod" || objects[0].GetNamespace() != "fleet" || data["version"] != "v1.36.0" || data["nodes"] != "3+0" || data["region"] != "north" || data["zone"] != "a" {
		t.Errorf("%v", objects[0].Object)
	}
}

func TestRenderRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"a: ${MISSING}":                "MISSING",
		"a: b":                         "document 1 lacks",
		"{s3cr3t":                      "document 1 cannot be parsed",
		"apiVersion: v1\nkind: Secret": "lacks",
	} {
		if _, err := render([]byte(text), nil); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
