package workflow_test

import (
	"testing"
	"time"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/workflow"
)

// TestStored checks that stored events still have the form in which they were written.
func TestStored(t *testing.T) {
	pinned.Events(t, workflow.NewCatalog(), workflow.Duration(90*time.Second), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}

// TestHistories replays runs of earlier versions, some with killed processes, and compares the resulting status.
func TestHistories(t *testing.T) {
	pinned.Histories(t, workflow.NewCatalog(), func(t *testing.T, events []pinned.History[workflow.Event]) any {
		var s workflow.State
		var chain workflow.Chain
		for _, e := range events {
			if wrong := chain.Check(&s, e.Event); wrong != "" {
				t.Error(wrong)
			}
			s.Apply(e.Event, e.At)
		}
		return workflow.Status(&s)
	})
}
