package job

import (
	"encoding/json"
	"testing"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
)

// TestStored holds the record in the log to what it was when it was written.
func TestStored(t *testing.T) {
	pinned.Records(t, map[string]any{"job": record{}},
		object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"}, json.RawMessage(`{"raw":"JSON"}`))
}
