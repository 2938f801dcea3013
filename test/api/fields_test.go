package api

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"scute.dev/test/assets"
	"scute.dev/test/harness"
)

// schema is the schema of a field in a CRD.
type schema = apiextensionsv1.JSONSchemaProps

// definitions returns the CRDs of this checkout.
func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	root, err := assets.Root()
	harness.Must(t, err)
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "*.yaml"))
	harness.Must(t, err)
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file)
		harness.Must(t, err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		harness.Must(t, yaml.UnmarshalStrict(data, crd))
		all = append(all, crd)
	}
	if len(all) == 0 {
		t.Fatal("no CRD in config/crd")
	}
	return all
}

// field is a field of an object. For a list it is the first item, for a map the value of one key.
type field struct {
	path     []string
	schema   *schema
	required bool
}

const (
	item  = "[0]"
	value = "Example.example.org" // a key for all maps that is valid in each
)

// String returns the path in the form that the API server uses.
func (f field) String() string {
	var s strings.Builder
	for i, at := range f.path {
		if at != item && i > 0 {
			at = "." + at
		}
		s.WriteString(at)
	}
	return s.String()
}

// leaf returns the name of the last named field in the path.
func (f field) leaf() string {
	for _, at := range slices.Backward(f.path) {
		if at != item && at != value {
			return at
		}
	}
	return ""
}

// below returns all fields of a schema: the field itself, and those in it.
func below(f field) []field {
	all := []field{f}
	child := func(name string, s *schema, required bool) {
		all = append(all, below(field{append(slices.Clone(f.path), name), s, required})...)
	}
	for _, name := range slices.Sorted(maps.Keys(f.schema.Properties)) {
		s := f.schema.Properties[name]
		child(name, &s, slices.Contains(f.schema.Required, name))
	}
	if f.schema.Items != nil {
		child(item, f.schema.Items.Schema, false)
	}
	if f.schema.AdditionalProperties != nil && f.schema.AdditionalProperties.Schema != nil {
		child(value, f.schema.AdditionalProperties.Schema, false)
	}
	return all
}

// Markers in place of a value.
var (
	absent = new(int) //nolint:gochecknoglobals // it is compared with: the field is taken away
	kept   = new(int) //nolint:gochecknoglobals // it is compared with: what is there stays, or the simplest valid value comes there
)

// place returns a copy of an object with a value at a path. It creates missing parents.
func place(object any, s *schema, path []string, v any) any {
	switch {
	case len(path) > 0:
	case v != kept:
		return v
	case object != nil:
		return object
	default:
		return valid(s)
	}
	at := path[0]
	if at == item {
		list, _ := object.([]any)
		if list = slices.Clone(list); len(list) == 0 {
			list = []any{valid(s.Items.Schema)}
		}
		list[0] = place(list[0], s.Items.Schema, path[1:], v)
		return list
	}
	properties, _ := object.(map[string]any)
	if properties = maps.Clone(properties); properties == nil {
		properties = required(s)
	}
	if len(path) == 1 && v == absent {
		delete(properties, at)
		return properties
	}
	next, ok := s.Properties[at]
	if !ok {
		next = *s.AdditionalProperties.Schema
	}
	properties[at] = place(properties[at], &next, path[1:], v)
	return properties
}
