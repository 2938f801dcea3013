package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/document"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/task/inputs"
)

// templateLimit bounds one template.
const templateLimit = 8 << 20

// load reads a template, fills it in, and decodes its objects. Errors name the parameter and quote nothing of the content,
// which may hold a secret.
func load(c *sequence.Context, field string, s *Source, values map[string]string) ([]*unstructured.Unstructured, error) {
	field = "spec.workflow.params." + field
	text, err := read(c, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	objects, err := render(text, values)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return objects, nil
}

func read(c *sequence.Context, s *Source) ([]byte, error) {
	switch {
	case s.Inline != "":
		return []byte(s.Inline), nil
	case s.File != "":
		info, err := os.Stat(s.File)
		if err != nil {
			return nil, err
		}
		if info.Size() > templateLimit {
			return nil, fmt.Errorf("%s is larger than %d MiB: split it", s.File, templateLimit>>20)
		}
		return os.ReadFile(s.File)
	}
	on, err := c.Open(access.ClusterRef{})
	if err != nil {
		return nil, err
	}
	namespace := c.Call().Namespace
	if ref := s.ConfigMapRef; ref != nil {
		var object corev1.ConfigMap
		err := on.Kube.Do(c, "get ConfigMap "+namespace+"/"+ref.Name, func(ctx context.Context) error {
			return on.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, &object)
		})
		if text, found := object.Data[ref.Key]; found || err != nil {
			return []byte(text), err
		}
		return nil, fmt.Errorf("the ConfigMap %s/%s has no key %q", namespace, ref.Name, ref.Key)
	}
	var object corev1.Secret
	err = on.Kube.Do(c, "get Secret "+namespace+"/"+s.SecretRef.Name, func(ctx context.Context) error {
		return on.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.SecretRef.Name}, &object)
	})
	if text, found := object.Data[s.SecretRef.Key]; found || err != nil {
		return text, err
	}
	return nil, fmt.Errorf("the Secret %s/%s has no key %q", namespace, s.SecretRef.Name, s.SecretRef.Key)
}

// render fills in the variables and decodes the documents.
func render(text []byte, values map[string]string) ([]*unstructured.Unstructured, error) {
	filled, err := inputs.NewProcessor().Process(text, func(name string) (string, error) {
		if value, known := values[name]; known {
			return value, nil
		}
		return "", errors.New("no such variable")
	})
	if err != nil {
		return nil, fmt.Errorf("filling in the variables: %w: set them in spec.workflow.params.cluster.variables", err)
	}
	var objects []*unstructured.Unstructured
	i := 0
	for raw, err := range document.Each(filled) {
		i++
		u := &unstructured.Unstructured{}
		if err == nil {
			err = json.Unmarshal(raw, &u.Object)
		}
		switch {
		case document.Says(err):
			return nil, fmt.Errorf("document %d: %w", i, err)
		case err != nil:
			return nil, fmt.Errorf("document %d cannot be parsed (the content is not shown)", i)
		case len(u.Object) == 0:
			continue
		case u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "":
			return nil, fmt.Errorf("document %d lacks apiVersion, kind or metadata.name", i)
		}
		objects = append(objects, u)
	}
	return objects, nil
}
