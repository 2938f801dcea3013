package request_test

import (
	"testing"
	"time"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/pause/request"
)

// TestStored holds what is in the logs of users to what it was when it was written.
func TestStored(t *testing.T) {
	pinned.Events(t, request.NewCatalog(), request.Duration(90*time.Second), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}
