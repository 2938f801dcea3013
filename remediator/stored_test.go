package remediator_test

import (
	"testing"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestStored holds what is in the logs of users to what it was when it was written.
func TestStored(t *testing.T) {
	pinned.Events(t, remediator.NewCatalog(), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}
