package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"
)

// kustomization has the fields of a kustomization.yaml that set labels.
type kustomization struct {
	CommonLabels map[string]string `json:"commonLabels"`
	Labels       []struct {
		Pairs map[string]string `json:"pairs"`
	} `json:"labels"`
}

// Definitions reads the CustomResourceDefinitions of a provider from its folder `config`. It adds the labels that
// kustomize adds for a release of the provider, and those that clusterctl adds to each object that it installs.
func Definitions(config string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir := filepath.Join(config, "crd")
	var k kustomization
	if err := read(filepath.Join(dir, "kustomization.yaml"), &k); err != nil {
		return nil, err
	}
	labels := map[string]string{clusterctlv1.ClusterctlLabel: ""}
	maps.Copy(labels, k.CommonLabels)
	for _, l := range k.Labels {
		maps.Copy(labels, l.Pairs)
	}
	patched, err := patches(filepath.Join(dir, "patches"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinitions in %s: %w", dir, err)
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := read(file, definition); err != nil {
			return nil, err
		}
		definition.Labels = maps.Clone(labels)
		maps.Copy(definition.Labels, patched[definition.Name])
		definition.Spec.Conversion = nil
		list = append(list, definition)
	}
	return list, nil
}

// patches returns the labels that the patches of a folder add, by the name of the CustomResourceDefinition.
func patches(dir string) (map[string]map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	labels := make(map[string]map[string]string)
	for _, file := range files {
		var patch metav1.PartialObjectMetadata
		if err := read(file, &patch); err != nil {
			continue // a JSON patch, which is a list
		}
		if len(patch.Labels) > 0 {
			labels[patch.Name] = patch.Labels
		}
	}
	return labels, err
}

func read(file string, into any) error {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && filepath.Base(file) == "kustomization.yaml" {
		return nil
	}
	if err == nil {
		err = yaml.Unmarshal(content, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

// facts describes the kinds of a provider that has no Go module.
type facts struct {
	// Labels are on all its CustomResourceDefinitions, in addition to clusterctl's.
	Labels map[string]string `json:"labels"`
	// Kinds are by group and version. An irregular plural follows the kind, after a space.
	Kinds map[string][]string `json:"kinds"`
	// Global are the cluster-scoped kinds.
	Global []string `json:"global"`
	// Hierarchy are the kinds that clusterctl moves together with everything that they own.
	Hierarchy []string `json:"hierarchy"`
}

// definitions returns a CustomResourceDefinition for each kind, which accepts every object.
func (f facts) definitions() []*apiextensionsv1.CustomResourceDefinition {
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, apiVersion := range slices.Sorted(maps.Keys(f.Kinds)) {
		group, version, _ := strings.Cut(apiVersion, "/")
		for _, kind := range f.Kinds[apiVersion] {
			kind, plural, named := strings.Cut(kind, " ")
			if !named {
				guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
				plural = guess.Resource
			}
			labels := map[string]string{clusterctlv1.ClusterctlLabel: ""}
			maps.Copy(labels, f.Labels)
			if slices.Contains(f.Hierarchy, kind) {
				labels[clusterctlv1.ClusterctlMoveHierarchyLabel] = ""
			}
			scope := apiextensionsv1.NamespaceScoped
			if slices.Contains(f.Global, kind) {
				scope = apiextensionsv1.ClusterScoped
			}
			list = append(list, &apiextensionsv1.CustomResourceDefinition{
				ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Labels: labels},
				Spec: apiextensionsv1.CustomResourceDefinitionSpec{
					Group: group, Scope: scope,
					Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
					Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
						Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
						Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
					}},
				},
			})
		}
	}
	return list
}
