package act

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFieldsOfTheInfrastructureMachine checks that a placeholder of a template has one value of limited size, because a
// large value in many places would exhaust the memory.
func TestFieldsOfTheInfrastructureMachine(t *testing.T) {
	infra := &unstructured.Unstructured{Object: map[string]any{
		"kind": "MetalMachine", "metadata": map[string]any{"name": "m"},
		"spec": map[string]any{"hardware": "h1", "large": strings.Repeat("x", 1<<20)},
	}}
	words, err := fields(infra, map[string]string{"${infrastructure.spec.hardware}": ".spec.hardware"}, []string{"${machine}", "m"})
	if err != nil || words.Replace("${machine} on ${infrastructure.spec.hardware}") != "m on h1" {
		t.Errorf("fields = %v, %v", words, err)
	}
	for path, says := range map[string]string{".spec.large": "has more than 1024 bytes there", ".spec": "has more than 1024 bytes there", ".spec.none": "has no such field"} {
		if _, err := fields(infra, map[string]string{"${x}": path}, nil); err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 200 {
			t.Errorf("%s: error %.200v, want %q", path, err, says)
		}
	}
}
