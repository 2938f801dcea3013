package apply

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubedocument "scute.dev/kube/document"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Manifests are Kubernetes objects: a list of objects, or one string of YAML documents.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Manifests struct{ raw json.RawMessage }

// UnmarshalJSON keeps the JSON for Objects to decode.
func (m *Manifests) UnmarshalJSON(data []byte) error {
	m.raw = bytes.Clone(data)
	return nil
}

// MarshalJSON returns the JSON unchanged.
func (m Manifests) MarshalJSON() ([]byte, error) {
	if len(m.raw) == 0 {
		return []byte("null"), nil
	}
	return m.raw, nil
}

// Objects decodes the manifests. It returns the items of lists, and ignores empty documents.
func (m *Manifests) Objects() ([]*unstructured.Unstructured, error) {
	data := bytes.TrimSpace(m.raw)
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return nil, err
		}
		return parseManifests([]byte(text))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, errors.New("it is neither a list of objects nor a string of YAML")
	}
	var objects []*unstructured.Unstructured
	for i, raw := range list {
		more, err := parseManifest(raw)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i+1, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// hasReferences reports whether the manifests are a string with references to outputs.
func (m *Manifests) hasReferences() bool {
	data := bytes.TrimSpace(m.raw)
	return len(data) > 0 && data[0] == '"' && task.HasReferences(string(data))
}

var separator = regexp.MustCompile(`(?m)^(---|\.\.\.)`)

var mentionsSecret = regexp.MustCompile(`(?i)kind["']?\s*:\s*["']?secret`)

// secrets returns the names of Secrets with content. It also finds them in manifests that cannot be
// applied. unreadable means that a document that may be a Secret cannot be parsed.
func (m *Manifests) secrets() (names []string, unreadable bool) {
	var text string
	if json.Unmarshal(m.raw, &text) != nil {
		var list []map[string]any
		_ = json.Unmarshal(m.raw, &list) // Objects returns the error if it is no list of objects
		for _, object := range list {
			names = appendSecrets(object, access.ObjectRef{}, names)
		}
		return names, false
	}
	for _, document := range separator.Split(string(kubedocument.ToUTF8([]byte(task.FillDefaults(text)))), -1) {
		objects, err := decodeLoosely(document)
		unreadable = unreadable || err != nil && mentionsSecret.MatchString(document)
		for _, object := range objects {
			names = appendSecrets(object, access.ObjectRef{}, names)
		}
	}
	return names, unreadable
}

// decodeLoosely decodes the objects of a document. A JSON document may contain several.
func decodeLoosely(text string) (objects []map[string]any, err error) {
	for raw, err := range kubedocument.Each([]byte(text)) {
		var object map[string]any
		if raw != nil && json.Unmarshal(raw, &object) == nil {
			objects = append(objects, object)
		}
		if err != nil && !kubedocument.IsOwnError(err) || errors.Is(err, kubedocument.ErrTooLarge) {
			return objects, err
		}
	}
	return objects, nil
}

// appendSecrets appends the name of object if it is a Secret with content. It also searches the
// items of lists. An item without a kind has the kind that follows from its typed list.
func appendSecrets(object map[string]any, list access.ObjectRef, names []string) []string {
	u := &unstructured.Unstructured{Object: object}
	ref := access.RefOf(u)
	if ref.Kind == "" && ref.APIVersion == "" {
		ref.APIVersion, ref.Kind = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
	}
	if ref.IsSecret() && (object["data"] != nil || object["stringData"] != nil) {
		names = append(names, cmp.Or(ref.Name, "without a name"))
	}
	items, _ := object["items"].([]any)
	for _, item := range items {
		if inside, ok := item.(map[string]any); ok {
			names = appendSecrets(inside, ref, names)
		}
	}
	return names
}

// parseManifests parses YAML documents. An error names the number of the document and does not
// quote it, because it may be a Secret.
func parseManifests(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	i := 0
	for raw, err := range kubedocument.Each(text) {
		i++
		if kubedocument.IsOwnError(err) {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d cannot be parsed (the content is not shown)", i)
		}
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		more, err := parseManifest(raw)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func parseManifest(raw []byte) ([]*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, errors.New("it is not an object with apiVersion and kind (the content is not shown)")
	}
	return flatten(u)
}

// flatten returns the objects of nested lists. Like kubectl, it sets a missing kind of an item from
// a typed list: Secret for SecretList.
func flatten(u *unstructured.Unstructured) (objects []*unstructured.Unstructured, err error) {
	if items, ok := u.Object["items"].([]any); ok {
		for i, item := range items {
			object, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("item %d of %s is not an object", i+1, u.GetKind())
			}
			one := &unstructured.Unstructured{Object: object}
			if one.GetKind() == "" && one.GetAPIVersion() == "" {
				one.SetAPIVersion(u.GetAPIVersion())
				one.SetKind(strings.TrimSuffix(u.GetKind(), "List"))
			}
			more, err := flatten(one)
			if err != nil {
				return nil, fmt.Errorf("item %d of %s: %w", i+1, u.GetKind(), err)
			}
			objects = append(objects, more...)
		}
		return objects, nil
	}
	// YAML reads a name such as 1 or true as a number or a boolean. GetName would return "" for it.
	for _, field := range []string{"name", "namespace"} {
		if _, _, err := unstructured.NestedString(u.Object, "metadata", field); err != nil {
			return nil, fmt.Errorf("%s: metadata.%s is not a string: put it in quotes", u.GetKind(), field)
		}
	}
	switch {
	case u.GetKind() == "":
		return nil, errors.New("it has no kind")
	case u.GetAPIVersion() == "":
		return nil, fmt.Errorf("%s has no apiVersion", u.GetKind())
	case u.GetName() == "":
		return nil, fmt.Errorf("%s has no metadata.name: set it (generateName would create another object in every attempt)", u.GetKind())
	}
	return []*unstructured.Unstructured{u}, nil
}

// ManifestSource is where manifests are read from when the task runs: a key of a ConfigMap or a
// Secret of the run's namespace on the run's cluster.
type ManifestSource struct {
	ConfigMapRef *access.SecretKey `json:"configMapRef,omitempty"`
	SecretRef    *access.SecretKey `json:"secretRef,omitempty"`
}

func (s *ManifestSource) check() []workflow.Problem {
	if (s.ConfigMapRef == nil) == (s.SecretRef == nil) {
		return []workflow.Problem{{Field: "from", Message: "it must have exactly one source", Remedy: "set either configMapRef or secretRef"}}
	}
	for field, ref := range map[string]*access.SecretKey{"configMapRef": s.ConfigMapRef, "secretRef": s.SecretRef} {
		if ref != nil && ref.Name == "" {
			return []workflow.Problem{{Field: "from." + field + ".name", Message: "it is empty", Remedy: "name the object that contains the manifests"}}
		}
	}
	return nil
}

// read returns the manifests. If no key is named, the object must have exactly one.
func (s *ManifestSource) read(ctx context.Context, clusters *access.Clusters, c *task.Call) ([]byte, error) {
	kind, field, ref := "ConfigMap", "with.from.configMapRef", s.ConfigMapRef
	if s.SecretRef != nil {
		kind, field, ref = "Secret", "with.from.secretRef", s.SecretRef
	}
	text, err := clusters.ReadKey(ctx, c, kind, ref)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return text, nil
}

func readManifestFiles(paths []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for i, path := range paths {
		text, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			return nil, fmt.Errorf("with.files[%d]: %w", i, err)
		}
		more, err := parseManifests(text)
		if err != nil {
			return nil, fmt.Errorf("with.files[%d]: %s: %w", i, path, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}
