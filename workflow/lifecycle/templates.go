package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/document"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const templateLimit = 8 << 20

// load reads and renders a template. Its errors name the parameter but never the content, which may
// be secret.
func load(c *provider.Context, field string, s *Source, values map[string]string) ([]*unstructured.Unstructured, error) {
	text, err := read(c, s)
	var objects []*unstructured.Unstructured
	if err == nil {
		objects, err = render(text, values)
	}
	if err != nil {
		return nil, fmt.Errorf("%s.%s: %w", paramsField, field, err)
	}
	return objects, nil
}

// Read reads the templates and files that a workflow will read. It skips inline templates, which
// New has already checked.
func (p *ManifestProvider) Read(c *provider.Context, workflow string, failed func(parameter string, err error)) {
	_, verb, _ := strings.Cut(workflow, "-")
	upgrade := verb == "upgrade"
	template, _ := p.params.template(upgrade)
	needed := []string{template}
	if verb != "delete" || workflow == ManagementDelete {
		field, components := p.params.components(upgrade)
		needed = append(needed, field)
		var with struct {
			ConfigFile string `json:"configFile"`
		}
		if err := json.Unmarshal(components.Providers, &with); err == nil && with.ConfigFile != "" && c.Local() {
			_, err := os.ReadFile(with.ConfigFile)
			failed(field+".providers.configFile", err)
		}
	}
	if verb != "delete" {
		networking, _ := p.params.networking(upgrade)
		needed = append(needed, networking)
	}
	if workflow == ManagementCreate {
		needed = append(needed, "configuration")
	}
	p.params.eachSource(func(field string, s *Source) {
		parameter, _, _ := strings.Cut(field, ".manifests[")
		if !slices.Contains(needed, parameter) || s.Inline != "" || *s == (Source{}) || s.File != "" && !c.Local() {
			return
		}
		text, err := read(c, s)
		if err == nil {
			_, err = render(text, sampleValues(p.cluster))
		}
		if s.File != "" {
			field += ".file"
		}
		failed(field, err)
	})
}

func read(c *provider.Context, s *Source) ([]byte, error) {
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
	kind, ref := "Secret", s.SecretRef
	if s.ConfigMapRef != nil {
		kind, ref = "ConfigMap", s.ConfigMapRef
	}
	name := types.NamespacedName{Namespace: c.Call().Namespace, Name: ref.Name}
	data, err := on.Data(c, kind, name)
	if text, found := data[ref.Key]; found || err != nil {
		return text, err
	}
	return nil, fmt.Errorf("the %s %s has no key %q", kind, name, ref.Key)
}

func render(text []byte, values map[string]string) ([]*unstructured.Unstructured, error) {
	filled, err := access.NewTemplateProcessor().Process(text, func(name string) (string, error) {
		if value, known := values[name]; known {
			return value, nil
		}
		return "", errors.New("the variable is not set")
	})
	if document.IsOwnError(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("replacing the variables: %w: set them in spec.workflow.params.cluster.variables", err)
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
		case document.IsOwnError(err):
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

func (s *Source) check(field string, local bool, values map[string]string) []workflow.Problem {
	if task.CountSet(s.Inline != "", s.File != "", s.ConfigMapRef != nil, s.SecretRef != nil) != 1 {
		return []workflow.Problem{{
			Field: field, Message: "the template must have exactly one source",
			Remedy: "set one of inline, file, configMapRef and secretRef",
		}}
	}
	if s.File != "" && !local {
		return []workflow.Problem{{Field: field + ".file", Message: "a file can only be used in a local run", Remedy: "use configMapRef or secretRef"}}
	}
	for name, key := range map[string]*Key{"configMapRef": s.ConfigMapRef, "secretRef": s.SecretRef} {
		if key != nil && (key.Name == "" || key.Key == "") {
			return []workflow.Problem{{Field: field + "." + name, Message: "name or key is empty", Remedy: "set both"}}
		}
	}
	if s.Inline != "" {
		if _, err := render([]byte(s.Inline), values); err != nil {
			return []workflow.Problem{{Field: field + ".inline", Message: err.Error(), Remedy: "correct the template"}}
		}
	}
	return nil
}
