package move

import (
	"encoding/json"
	"testing"

	"scute.dev/workflow/task"
)

// TestRemoves checks that objects that are missing in the namespace of moved clusters count as moved.
func TestRemoves(t *testing.T) {
	for with, want := range map[string]bool{
		`{"clusters": ["prod"], "namespace": "fleet"}`: true,
		`{"clusters": ["prod"]}`:                       false, // the namespace of the run
		`{"all": true, "namespace": "other"}`:          false,
		`{"namespace": "${tasks.a.output.list}"`:       true, // unknown until the output exists
	} {
		if got := (&Kind{}).Removes(&task.Call{Namespace: "runs", With: json.RawMessage(with)}, task.Object{Namespace: "fleet"}); got != want {
			t.Errorf("Removes with %s = %t, want %t", with, got, want)
		}
	}
}
