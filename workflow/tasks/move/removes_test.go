package move

import (
	"encoding/json"
	"testing"

	"scute.dev/workflow/task"
)

// TestRemoves: what is gone from the namespace that clusters are moved from may have been moved.
func TestRemoves(t *testing.T) {
	for with, want := range map[string]bool{
		`{"clusters": ["prod"], "namespace": "fleet"}`: true,
		`{"clusters": ["prod"]}`:                       false, // of the run's own
		`{"all": true, "namespace": "other"}`:          false,
		`{"namespace": "${tasks.a.output.list}"`:       true, // nobody can tell
	} {
		if got := (&Kind{}).Removes(&task.Call{Namespace: "runs", With: json.RawMessage(with)}, task.Object{Namespace: "fleet"}); got != want {
			t.Errorf("%s: %t, want %t", with, got, want)
		}
	}
}
