package crd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

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

// Validator validates objects of one kind with one version of its CustomResourceDefinition.
type Validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator                                  // nil without rules
	scale      *apiextensionsv1.CustomResourceSubresourceScale // nil without the subresource
}

// NewValidator returns a Validator for a version.
func NewValidator(version *apiextensionsv1.CustomResourceDefinitionVersion) (*Validator, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, errors.New("it has no schema")
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("converting it: %w", err)
	}
	v := &Validator{}
	if version.Subresources != nil {
		v.scale = version.Subresources.Scale
	}
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

// Accepts reports whether a kube-apiserver with this schema would store the object and its metadata, if only its validation decides. It first drops
// unknown fields, as a kube-apiserver does. A nil Validator accepts nothing.
func (v *Validator) Accepts(ctx context.Context, u *unstructured.Unstructured) bool {
	return v.accepts(ctx, u, false)
}

// AcceptsUpdate reports whether a kube-apiserver would store an update that changes only the metadata of a stored object, as Accepts does. It also
// evaluates rules that compare the object with its previous state (oldSelf).
func (v *Validator) AcceptsUpdate(ctx context.Context, u *unstructured.Unstructured) bool {
	return v.accepts(ctx, u, true)
}

func (v *Validator) accepts(ctx context.Context, u *unstructured.Unstructured, stored bool) bool {
	if v == nil {
		return false
	}
	namespaced := u.GetNamespace() != ""
	if len(metavalidation.ValidateObjectMetaAccessor(u, namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))) > 0 {
		return false
	}
	object := runtime.DeepCopyJSON(u.Object)
	pruning.PruneWithOptions(object, v.structural, true, structuralschema.UnknownFieldPathOptions{})
	return len(v.validate(ctx, object, stored)) == 0
}

// Validate returns the errors that a kube-apiserver would return when the object is created, except for errors in its metadata. It applies defaults
// and removes meaningless nulls in a copy of the object.
func (v *Validator) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	return v.validate(ctx, object, false)
}

func (v *Validator) validate(ctx context.Context, object map[string]any, stored bool) field.ErrorList {
	object = runtime.DeepCopyJSON(object)
	defaulting.Default(object, v.structural)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	errs := validation.ValidateCustomResource(nil, object, v.schema)
	errs = append(errs, v.validateScale(object)...)
	errs = append(errs, objectmeta.Validate(nil, object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	if v.rules == nil || blocksRules(errs) {
		return errs
	}
	var old any // nil if the object is new
	if stored {
		old = object
	}
	broken, _ := v.rules.Validate(ctx, nil, v.structural, object, old, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// validateScale checks that the fields of the subresource scale are valid in a Scale, even if the schema allows other values.
func (v *Validator) validateScale(object map[string]any) (errs field.ErrorList) {
	if v.scale == nil {
		return nil
	}
	fields := func(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
	for _, path := range []string{v.scale.SpecReplicasPath, v.scale.StatusReplicasPath} {
		n, _, err := unstructured.NestedInt64(object, fields(path)...)
		if err != nil || n < 0 || n > math.MaxInt32 {
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a number of replicas"))
		}
	}
	if path := v.scale.LabelSelectorPath; path != nil {
		if selector, _, err := unstructured.NestedString(object, fields(*path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), selector, "should be a label selector"))
		}
	}
	return errs
}

// UnknownFields returns the paths of the fields that are not in the schema. A kube-apiserver drops them with a warning.
func (v *Validator) UnknownFields(object map[string]any) []string {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(object), v.structural, true, options)
}

// blocksRules reports whether errors prevent the evaluation of rules, because rules rely on the types and bounds of the schema.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
