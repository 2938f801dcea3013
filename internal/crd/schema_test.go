package crd

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// version defines objects that their spec can freeze and scale.
const version = `
name: v1
served: true
storage: true
subresources:
  status: {}
  scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
schema:
  openAPIV3Schema:
    type: object
    x-kubernetes-validations: [{rule: "!has(oldSelf.spec) || !has(oldSelf.spec.frozen) || !oldSelf.spec.frozen", message: "it is frozen"}]
    properties:
      spec:
        type: object
        properties:
          frozen: {type: boolean}
          replicas: {type: integer}
          made:
            type: string
            x-kubernetes-validations: [{rule: "!oldSelf.hasValue() || self != 'new'", optionalOldSelf: true}]
      status:
        type: object
        x-kubernetes-preserve-unknown-fields: true
`

func TestAcceptsUpdate(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinitionVersion{}
	if err := yaml.UnmarshalStrict([]byte(version), definition); err != nil {
		t.Fatal(err)
	}
	v, err := NewValidator(definition)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fields        string
		create, write bool
	}{
		"plain":               {"spec: {replicas: 3}, status: {replicas: 3, selector: a=b}", true, true},
		"empty":               {"", true, true},
		"frozen":              {"spec: {frozen: true}", true, false},
		"only when it is new": {"spec: {made: new}", true, false},
		"below zero":          {"spec: {replicas: -1}", false, false},
		"too many":            {"spec: {replicas: 2147483648}", false, false},
		"a status below zero": {"status: {replicas: -1}", false, false},
		"no number":           {"status: {replicas: many}", false, false},
		"no selector":         {"status: {selector: {a: b}}", false, false},
		"of another type":     {"spec: {frozen: 1}", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			text := "{" + strings.Join([]string{"apiVersion: example.com/v1", "kind: Set", "metadata: {name: a, namespace: n}", c.fields}, ", ") + "}"
			raw, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := u.UnmarshalJSON(raw); err != nil { // integers are int64, as from an API server
				t.Fatal(err)
			}
			if got := v.Accepts(t.Context(), u); got != c.create {
				t.Errorf("Accepts = %t", got)
			}
			if got := v.AcceptsUpdate(t.Context(), u); got != c.write {
				t.Errorf("AcceptsUpdate = %t", got)
			}
		})
	}
}

func TestNoSchema(t *testing.T) {
	if _, err := NewValidator(&apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"}); err == nil {
		t.Error("NewValidator without a schema succeeded")
	}
}
