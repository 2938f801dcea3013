package deletion

import (
	"encoding/json"
	"testing"

	"scute.dev/workflow/task"
)

// TestRemoves checks that a Delete counts as the cause of a missing object if it recorded the object's UID, or its
// namespace.
func TestRemoves(t *testing.T) {
	record := json.RawMessage(`{"objects": [
		{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "fleet", "name": "a", "uid": "u-1"},
		{"apiVersion": "v1", "kind": "Namespace", "name": "old", "uid": "u-2"}]}`)
	for object, want := range map[task.Object]bool{
		{Namespace: "fleet", UID: "u-1"}: true,
		{Namespace: "fleet", UID: "u-3"}: false, // created again since
		{Namespace: "old", UID: "u-4"}:   true,
	} {
		if got := (&Kind{}).Removes(&task.Call{Undo: record}, object); got != want {
			t.Errorf("Removes(%+v) = %t, want %t", object, got, want)
		}
	}
	if (&Kind{}).Removes(&task.Call{}, task.Object{Namespace: "fleet"}) {
		t.Error("Removes without a record = true, want false")
	}
}
