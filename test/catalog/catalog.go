package catalog

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"scute.dev/test/assets"
)

// Provider is a provider of Cluster API, or several that are released together.
type Provider struct {
	// Name is the name in the chart's value `providers`.
	Name string
	// Definitions are the definitions of its kinds, with their labels. None has a conversion webhook.
	Definitions []*apiextensionsv1.CustomResourceDefinition
}

//go:embed kinds.yaml
var kinds []byte

// Providers returns all providers, sorted by name. It downloads modules that are not in the module cache.
func Providers(ctx context.Context) ([]Provider, error) {
	folders, err := folders(ctx)
	if err != nil {
		return nil, err
	}
	var others map[string]facts
	if err := yaml.UnmarshalStrict(kinds, &others); err != nil {
		return nil, fmt.Errorf("reading kinds.yaml: %w", err)
	}
	var list []Provider
	for name, configs := range folders {
		p := Provider{Name: name}
		for _, config := range configs {
			definitions, err := Definitions(config)
			if err != nil {
				return nil, err
			}
			p.Definitions = append(p.Definitions, definitions...)
		}
		list = append(list, p)
	}
	for name, f := range others {
		list = append(list, Provider{Name: name, Definitions: f.definitions()})
	}
	slices.SortFunc(list, func(a, b Provider) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// folders returns the folders `config` of the providers that have a Go module.
func folders(ctx context.Context) (map[string][]string, error) {
	core, err := assets.FindModules(ctx)
	if err != nil {
		return nil, err
	}
	pinned, err := Pinned(ctx, "sigs.k8s.io/cluster-api-provider-aws/v2", "sigs.k8s.io/cluster-api-provider-gcp")
	if err != nil {
		return nil, err
	}
	return map[string][]string{
		"aws":  {filepath.Join(pinned[0], "config")},
		"core": {filepath.Join(core.ClusterAPI, "core", "config")},
		"dev":  {filepath.Join(core.ClusterAPITest, "infrastructure", "docker", "config")},
		"gcp":  {filepath.Join(pinned[1], "config")},
		"kubeadm": {
			filepath.Join(core.ClusterAPI, "bootstrap", "kubeadm", "config"), filepath.Join(core.ClusterAPI, "controlplane", "kubeadm", "config"),
		},
	}, nil
}

// Pinned returns the folders of modules that modules/go.mod requires.
func Pinned(ctx context.Context, modules ...string) ([]string, error) {
	return assets.Folders(ctx, filepath.Join("test", "catalog", "modules"), modules...)
}
