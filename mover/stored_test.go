package mover_test

import (
	"testing"
	"time"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestStored checks that stored events still have the form in which they were written.
func TestStored(t *testing.T) {
	pinned.Events(t, mover.NewCatalog(), mover.Duration(90*time.Second), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}

// TestHistories replays moves of earlier versions, some with killed processes, and compares the resulting status.
func TestHistories(t *testing.T) {
	pinned.Histories(t, mover.NewCatalog(), func(t *testing.T, events []pinned.History[mover.Event]) any {
		var s mover.State
		var links chain
		for _, e := range events {
			if wrong := links.check(&s, e.Event); wrong != "" {
				t.Error(wrong)
			}
			s.Apply(e.Event, e.At)
		}
		return mover.Status(&s)
	})
}
