package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Definition is that by which an API server validates objects of a kind in its first version. It is nil where a schema is not
// all that may refuse one: the API server has a webhook convert objects of that version, keeps fields that the schema does not have, or
// does not say.
func (c *Cluster) Definition(ctx context.Context, t Type) (*apiextensionsv1.CustomResourceDefinitionVersion, error) {
	name := t.Plural + "." + t.Group
	var list apiextensionsv1.CustomResourceDefinitionList
	err := c.Do(ctx, "read the definition of "+name, func(ctx context.Context) error {
		d := definitions()
		raw, err := c.discovery.RESTClient().Get().AbsPath(path.Join("/apis", d.Group, d.Versions[0], d.Plural)).
			Param("fieldSelector", "metadata.name="+name).Do(ctx).Raw()
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &list)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", t.Kind, err)
	}
	for _, d := range list.Items {
		if d.Name != name {
			continue
		}
		for _, v := range d.Spec.Versions {
			converted := d.Spec.Conversion != nil && d.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter && !v.Storage
			if v.Name == t.Versions[0] && !converted && !d.Spec.PreserveUnknownFields && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				return &v, nil
			}
		}
	}
	return nil, nil
}

func definitions() Type {
	return Type{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions", Versions: []string{"v1"}}
}
