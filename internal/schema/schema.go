package schema

import (
	"context"
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
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Validator holds objects of one kind against its schema.
type Validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator // nil without any
}

// New makes a Validator of a schema.
func New(schema *apiextensionsv1.JSONSchemaProps) (*Validator, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, props, nil); err != nil {
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

// Accepts says that a kube-apiserver with this schema would store the object, its metadata included, if nothing but its
// validation has a say. It drops the fields that it does not know first, as a kube-apiserver does.
func (v *Validator) Accepts(ctx context.Context, u *unstructured.Unstructured) bool {
	namespaced := u.GetNamespace() != ""
	if len(metavalidation.ValidateObjectMetaAccessor(u, namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))) > 0 {
		return false
	}
	object := runtime.DeepCopyJSON(u.Object)
	pruning.PruneWithOptions(object, v.structural, true, structuralschema.UnknownFieldPathOptions{})
	return len(v.Validate(ctx, object)) == 0
}

// Validate finds what a kube-apiserver finds that is asked to create the object, but for its metadata. Defaults are filled in
// for it and a null that means nothing is taken away; the object itself is not changed.
func (v *Validator) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, v.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	errs = append(errs, objectmeta.Validate(nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if v.rules == nil || blocks(errs) {
		return errs
	}
	broken, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// Unknown are the paths of the fields that the schema does not have. A kube-apiserver drops them with a warning.
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
