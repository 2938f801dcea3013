package main

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"scute.dev/config/crd"
)

// TestEveryFieldOfAPolicyIsDocumented checks that each field of RepairPolicy and RepairLimits has a row in a table of
// docs/remediation.md, and a value in the example that shows every field.
func TestEveryFieldOfAPolicyIsDocumented(t *testing.T) {
	definitions, err := crd.Definitions(crd.Files)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/remediation.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, file := range map[string]string{"RepairPolicy": "docs/examples/repair/policy.yaml", "RepairLimits": "docs/examples/repair/limits.yaml"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		var example map[string]any
		if err := yaml.Unmarshal(text, &example); err != nil {
			t.Fatal(err)
		}
		spec, _ := example["spec"].(map[string]any)
		schema := definitions[kind].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for name, field := range schema.Properties {
			checkField(t, string(page), file, name, &field, spec[name])
		}
	}
}

// checkField checks a field and descends into objects. The fields below a list or a selector are documented with it.
func checkField(t *testing.T, page, example, path string, field *apiextensionsv1.JSONSchemaProps, value any) {
	t.Helper()
	if value == nil {
		t.Errorf("%s has no value for %s", example, path)
	}
	if inner, ok := value.(map[string]any); ok && path != "selector" {
		for name, below := range field.Properties {
			checkField(t, page, example, path+"."+name, &below, inner[name])
		}
		return
	}
	if !strings.Contains(page, "`"+path+"`") {
		t.Errorf("docs/remediation.md has no row for `%s`", path)
	}
}
