package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"sigs.k8s.io/yaml"
)

// TestRepairPoliciesHaveNoUnknownField holds the RepairPolicies among the examples against the schema: an API server drops
// what it does not know, and only warns.
func TestRepairPoliciesHaveNoUnknownField(t *testing.T) {
	schema := schemaOf(t, "config/crd/scute.dev_repairpolicies.yaml")
	fields, err := structural.NewStructural(schema)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/examples/repair/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policies := 0
	for _, file := range files {
		var example map[string]any
		read(t, file, &example)
		if example["kind"] != "RepairPolicy" {
			continue
		}
		policies++
		for _, unknown := range pruning.PruneWithOptions(example, fields, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
			t.Errorf("%s: %s is not a field", filepath.Base(file), unknown)
		}
	}
	if policies == 0 {
		t.Error("there is no example of a RepairPolicy")
	}
}

// schemaOf the first version of a CRD.
func schemaOf(t *testing.T, path string) *apiextensions.JSONSchemaProps {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	read(t, filepath.Join(root, path), &crd)
	schema := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, schema, nil); err != nil {
		t.Fatal(err)
	}
	return schema
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
