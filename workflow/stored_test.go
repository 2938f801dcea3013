package workflow_test

import (
	"testing"
	"time"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/workflow"
)

// TestStored holds what is in the logs of users to what it was when it was written.
func TestStored(t *testing.T) {
	pinned.Events(t, workflow.NewCatalog(), workflow.Duration(90*time.Second), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}

// TestHistories holds what runs that have happened come to. Processes were killed in some of them.
func TestHistories(t *testing.T) {
	pinned.Histories(t, workflow.NewCatalog(), func(t *testing.T, events []pinned.History[workflow.Event]) any {
		var s workflow.State
		var chain workflow.Chain
		for _, e := range events {
			if wrong := chain.Take(&s, e.Event); wrong != "" {
				t.Error(wrong)
			}
			s.Apply(e.Event, e.At)
		}
		return workflow.Status(&s)
	})
}
