package object_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/object"
)

// TestWithoutCondition checks that the condition is removed from all lists of Cluster API, that everything else is
// kept, and that the object is not changed.
func TestWithoutCondition(t *testing.T) {
	const given = "{conditions: [{type: Ready}, {type: Paused}], v1beta2: {conditions: [{type: Paused}, {type: Ready}]}, deprecated: {v1beta1: {conditions: [{type: Ready}]}}, phase: x}"
	for status, want := range map[string]string{
		given:                     "{conditions: [{type: Ready}], v1beta2: {conditions: [{type: Ready}]}, deprecated: {v1beta1: {conditions: [{type: Ready}]}}, phase: x}",
		"{phase: x}":              "{phase: x}",
		"{conditions: none}":      "{conditions: none}",
		"{conditions: [1, null]}": "{conditions: [1, null]}",
		"{}":                      "{}",
		"none":                    "null",
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"status": parsed(t, status)}}
		var wanted map[string]any
		if want != "null" {
			wanted = parsed(t, want).(map[string]any)
		}
		if got := object.WithoutCondition(u, "Paused"); !reflect.DeepEqual(got, wanted) {
			t.Errorf("WithoutCondition for %s = %v", status, got)
		}
		if !reflect.DeepEqual(u.Object["status"], parsed(t, status)) {
			t.Errorf("%s: the object was changed: %v", status, u.Object)
		}
	}
	if got := object.WithoutCondition(&unstructured.Unstructured{Object: map[string]any{}}, "Paused"); got != nil {
		t.Errorf("WithoutCondition without a status = %v, want nil", got)
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}
