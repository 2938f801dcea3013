package wait

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/workflow/task/access"
)

// TestWaitIsFresh: a status that was made for an earlier spec is not believed, unless the task says so.
func TestWaitIsFresh(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "generation": int64(4)},
		"status": map[string]any{
			"observedGeneration": int64(3), "replicas": int64(1),
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		},
	}}
	ref := access.RefOf(u)
	for name, w := range map[string]With{
		"cel":       {For: WaitFor{CEL: "object.status.replicas == 1"}},
		"condition": {For: WaitFor{Condition: &WaitCondition{Type: "Available"}}},
	} {
		for stale, want := range map[bool]string{false: ref.String() + ": status is of generation 3, spec is of generation 4", true: ""} {
			w.AllowStale = stale
			test, err := w.test(nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := test(t.Context(), ref, u); got != want || err != nil {
				t.Errorf("%s, allowStale %t: %q %v, want %q", name, stale, got, err, want)
			}
		}
	}
}
