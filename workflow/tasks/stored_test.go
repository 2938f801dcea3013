package tasks

import (
	"encoding/json"
	"testing"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
)

// TestStored holds the records that tasks keep in the log for their undo to what they were when they were written.
func TestStored(t *testing.T) {
	pinned.Records(t, map[string]any{
		"apply": applyRecord{}, "delete": deleteRecord{}, "job": jobRecord{}, "move": moved{}, "pause": paused{}, "resume": resumed{}, "providers": arranged{},
	}, object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"}, json.RawMessage(`{"raw":"JSON"}`))
}
