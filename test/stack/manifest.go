package stack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// load reads the CRDs and webhook configurations of a YAML file.
func load(path string) ([]client.Object, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a manifest: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 64<<10)
	var objects []client.Object
	for {
		var raw yamlDocument
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		object, err := raw.object()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
}

// yamlDocument is one document as JSON.
type yamlDocument []byte

// UnmarshalJSON stores the document unchanged.
func (d *yamlDocument) UnmarshalJSON(content []byte) error {
	*d = bytes.Clone(content)
	return nil
}

func (d yamlDocument) object() (client.Object, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(d, &kind); err != nil {
		return nil, err
	}
	var object client.Object
	switch kind.Kind {
	case "": // an empty document
		return nil, nil
	case "CustomResourceDefinition":
		object = &apiextensionsv1.CustomResourceDefinition{}
	case "MutatingWebhookConfiguration":
		object = &admissionv1.MutatingWebhookConfiguration{}
	case "ValidatingWebhookConfiguration":
		object = &admissionv1.ValidatingWebhookConfiguration{}
	default:
		return nil, fmt.Errorf("unexpected kind %s", kind.Kind)
	}
	return object, yaml.Unmarshal(d, object)
}
