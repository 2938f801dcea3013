package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Definition returns the version of the CustomResourceDefinition with whose schema the API server validates objects in the kind's first version. It
// returns nil if the schema alone does not decide: a webhook converts objects of the version, unknown fields are preserved, or there is no schema.
func (c *Cluster) Definition(ctx context.Context, t Type) (*apiextensionsv1.CustomResourceDefinitionVersion, error) {
	name := t.Plural + "." + t.Group
	var list apiextensionsv1.CustomResourceDefinitionList
	err := c.Do(ctx, "read the definition of "+name, func(ctx context.Context) error {
		d := crdType()
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

func crdType() Type {
	return Type{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions", Versions: []string{"v1"}}
}
