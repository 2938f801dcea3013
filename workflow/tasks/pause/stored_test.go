package pause

import (
	"encoding/json"
	"testing"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
)

// TestStored checks that stored records still have the form in which they were written.
func TestStored(t *testing.T) {
	pinned.Records(t, map[string]any{"pause": Record{}, "resume": resumed{}},
		object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"}, json.RawMessage(`{"raw":"JSON"}`))
}
