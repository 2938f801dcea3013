package crd

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"scute.dev/config"
)

// Definitions are those in a folder of CRDs, by their kinds.
func Definitions(folder fs.FS) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	all := make(map[string]*apiextensionsv1.CustomResourceDefinition)
	err := fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, d); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		all[d.Spec.Names.Kind] = d
		return nil
	})
	return all, err
}

// Validator holds objects of one kind against its definition.
type Validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator // nil without any
}

// New makes a Validator of a kind of scute's.
func New(kind string) (*Validator, error) {
	all, err := Definitions(config.CRDs)
	if err != nil {
		return nil, err
	}
	d, ok := all[kind]
	if !ok {
		return nil, fmt.Errorf("there is no definition of the kind %s", kind)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(d.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("converting the schema of %s: %w", kind, err)
	}
	v := &Validator{}
	if v.structural, err = structuralschema.NewStructural(props); err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", kind, err)
	}
	if v.schema, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", kind, err)
	}
	v.rules = cel.NewValidator(v.structural, true, celconfig.PerCallLimit)
	return v, nil
}

// Validate finds what a kube-apiserver finds that is asked to create the object, but for its metadata. Defaults are filled in
// for it and a null that means nothing is taken away; the object itself is not changed.
func (v *Validator) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, v.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if v.rules == nil || blocks(errs) {
		return errs
	}
	broken, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// Unknown are the paths of the fields that the definition does not have. A kube-apiserver drops them with a warning.
func (v *Validator) Unknown(object map[string]any) []string {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(object), v.structural, true, options)
}

// blocks says that the rules cannot be evaluated: they rely on the types and bounds of the schema.
func blocks(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
