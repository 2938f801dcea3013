package request_test

import (
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

// TestStored checks that stored events still have the form in which they were written.
func TestStored(t *testing.T) {
	pinned.Events(t, request.NewCatalog(), pause.Duration(90*time.Second), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}

// TestHistories replays Pauses of earlier versions, one of them with a killed process, and compares the status in each
// phase and at the end.
func TestHistories(t *testing.T) {
	pinned.Histories(t, request.NewCatalog(), func(_ *testing.T, events []pinned.History[request.Event]) any {
		var s request.State
		var shown []v1alpha1.PauseStatus
		for _, e := range events {
			before := request.Status(&s)
			s.Apply(e.Event, e.At)
			if s.Phase != before.Phase {
				shown = append(shown, before)
			}
		}
		return append(shown, request.Status(&s))
	})
}
