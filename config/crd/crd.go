package crd

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Files are the generated CustomResourceDefinitions of scute.
//
//go:embed *.yaml
var Files embed.FS

// Definitions returns the CustomResourceDefinitions in a folder, by kind.
func Definitions(folder fs.FS) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	all := make(map[string]*apiextensionsv1.CustomResourceDefinition)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, d); err != nil { //nolint:forbidigo // a file of this program
			return fmt.Errorf("reading %s: %w", name, err)
		}
		all[d.Spec.Names.Kind] = d
		return nil
	})
	return all, err
}

// New returns a Validator for a kind of scute.
func New(kind string) (*Validator, error) {
	all, err := Definitions(Files)
	if err != nil {
		return nil, err
	}
	d, ok := all[kind]
	if !ok {
		return nil, fmt.Errorf("there is no definition of the kind %s", kind)
	}
	v, err := newValidator(&d.Spec.Versions[0])
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", kind, err)
	}
	return v, nil
}
