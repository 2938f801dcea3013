package object_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/object"
)

// TestLag checks that a status of another generation is reported, and that a status without a generation is not.
func TestLag(t *testing.T) {
	for name, c := range map[string]struct{ text, status, condition string }{
		"of the spec":           {"{kind: Thing, metadata: {generation: 4}, status: {observedGeneration: 4, conditions: [{type: Ready, observedGeneration: 4}]}}", "", ""},
		"older":                 {"{kind: Thing, metadata: {generation: 4}, status: {observedGeneration: 3, conditions: [{type: Ready, observedGeneration: 3}]}}", "the status is for generation 3, but the spec has generation 4", "condition Ready is for generation 3, but the spec has generation 4"},
		"of an earlier object":  {"{kind: Thing, metadata: {generation: 1}, status: {observedGeneration: 3}}", "the status is for generation 3, but the spec has generation 1", "the status is for generation 3, but the spec has generation 1"},
		"condition is newer":    {"{kind: Thing, metadata: {generation: 4}, status: {observedGeneration: 3, conditions: [{type: Ready, observedGeneration: 4}]}}", "the status is for generation 3, but the spec has generation 4", ""},
		"condition has none":    {"{kind: Thing, metadata: {generation: 4}, status: {observedGeneration: 3, conditions: [{type: Ready}]}}", "the status is for generation 3, but the spec has generation 4", "the status is for generation 3, but the spec has generation 4"},
		"reports nothing":       {"{kind: Thing, metadata: {generation: 4}, status: {conditions: [{type: Ready}]}}", "", ""},
		"no status":             {"{kind: Thing, metadata: {generation: 4}}", "", ""},
		"what is no generation": {"{kind: Thing, metadata: {generation: 4}, status: {observedGeneration: x, conditions: [{type: Ready, observedGeneration: y}]}}", "", ""},
	} {
		text, err := yaml.YAMLToJSON([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil { // numbers become integers, as from an API server
			t.Fatal(err)
		}
		if got := object.StatusLag(u); got != c.status {
			t.Errorf("%s: StatusLag = %q, want %q", name, got, c.status)
		}
		if got := object.ConditionLag(u, "Ready"); got != c.condition {
			t.Errorf("%s: ConditionLag = %q, want %q", name, got, c.condition)
		}
	}
}

func TestUntrue(t *testing.T) {
	u := parse(t, "{apiVersion: x.io/v1, kind: Thing, metadata: {name: a, namespace: fleet}, status: {conditions: [{type: Ready, status: 'True'}, {type: Scaled, status: Unknown, reason: Why, message: \"a\\n b\"}]}}")
	got := strings.Join(object.UntrueConditions(u, "Ready", "Scaled", "Other"), "; ")
	if want := "Thing.x.io fleet/a: Scaled is Unknown (Why): a b; Thing.x.io fleet/a has no condition Other yet"; got != want {
		t.Errorf("UntrueConditions = %q, want %q", got, want)
	}
}
