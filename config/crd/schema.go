package crd

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Validator validates objects of one kind with one version of its CustomResourceDefinition.
type Validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator // nil without rules
}

func newValidator(version *apiextensionsv1.CustomResourceDefinitionVersion) (*Validator, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, errors.New("it has no schema")
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("converting it: %w", err)
	}
	v := &Validator{}
	var err error
	if v.structural, err = structuralschema.NewStructural(props); err != nil {
		return nil, err
	}
	if v.schema, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, err
	}
	v.rules = cel.NewValidator(v.structural, true, celconfig.PerCallLimit)
	return v, nil
}

// Validate returns the errors that a kube-apiserver would return when the object is created, except
// for errors in its metadata. It applies defaults and removes meaningless nulls in a copy of the
// object.
func (v *Validator) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, v.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	errs = append(errs, objectmeta.Validate(nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if v.rules == nil || blocksRules(errs) {
		return errs
	}
	broken, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// UnknownFields returns the paths of the fields that are not in the schema. A kube-apiserver drops them with a warning.
func (v *Validator) UnknownFields(object map[string]any) []string {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(object), v.structural, true, options)
}

// blocksRules reports whether errors prevent the evaluation of rules, because rules rely on the
// types and bounds of the schema.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
