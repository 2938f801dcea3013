package api

import (
	"maps"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
)

// changeable returns the spec fields that may be changed, for the kinds whose spec is otherwise immutable.
func changeable() map[string][]string {
	return map[string][]string{"Move": {"abort", "abandonTarget"}, "WorkflowRun": {"suspend"}}
}

// TestFixedSpecs checks that every addition to an immutable spec, every removal and every change is refused with the
// field's name.
func TestFixedSpecs(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	c := admin()
	serve(ctx, t, definitions(t)...)
	for _, crd := range definitions(t) {
		may, fixed := changeable()[crd.Spec.Names.Kind]
		if !fixed {
			continue
		}
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		s := root.Properties["spec"]
		for name := range s.Properties {
			p := s.Properties[name]
			f := field{[]string{"spec", name}, &p, slices.Contains(s.Required, name)}
			base := baseFor(ctx, t, c, crd, f)
			spec, _ := base.Object["spec"].(map[string]any)
			other := base.DeepCopy()
			other.Object, _ = place(base.Object, root, f.path, changed(&p, spec[name])).(map[string]any)
			err := c.Update(ctx, other, client.DryRunAll)
			switch {
			case slices.Contains(may, name) && err != nil:
				t.Errorf("%s %s may be changed, but is refused: %v", crd.Spec.Names.Kind, f, err)
			case !slices.Contains(may, name) && err == nil:
				t.Errorf("%s %s can be changed, want an error", crd.Spec.Names.Kind, f)
			case !slices.Contains(may, name) && !names(err, f):
				t.Errorf("%s %s: the error does not name the field: %v", crd.Spec.Names.Kind, f, err)
			}
		}
	}
}

// changed returns a valid value other than v.
func changed(s *schema, v any) any {
	switch v := v.(type) {
	case nil:
		return valid(s)
	case bool:
		return !v
	case string:
		for _, text := range append(texts(), v+"x") {
			if text != v && takes(s, text) {
				return text
			}
		}
		return v
	case []any:
		if s.Items == nil {
			return v
		}
		v = slices.Clone(v)
		v[0] = changed(s.Items.Schema, v[0])
		return v
	case map[string]any:
		v = maps.Clone(v)
		for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[key]
			if was, ok := v[key]; ok {
				v[key] = changed(&p, was)
				return v
			}
		}
		return v
	default:
		return v
	}
}
