package mover_test

import (
	"testing"
	"time"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestStored holds what is in the logs of users to what it was when it was written.
func TestStored(t *testing.T) {
	pinned.Events(t, mover.NewCatalog(), mover.Duration(90*time.Second), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}

// TestHistories replays moves of earlier versions and compares the states that they lead to. Processes were killed in
// some of them.
func TestHistories(t *testing.T) {
	pinned.Histories(t, mover.NewCatalog(), func(t *testing.T, events []pinned.History[mover.Event]) any {
		var s mover.State
		var links chain
		for _, e := range events {
			if wrong := links.take(&s, e.Event); wrong != "" {
				t.Error(wrong)
			}
			s.Apply(e.Event, e.At)
		}
		return mover.Status(&s)
	})
}
