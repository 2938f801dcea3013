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

// TestStored holds what is in the logs of users to what it was when it was written.
func TestStored(t *testing.T) {
	pinned.Events(t, request.NewCatalog(), pause.Duration(90*time.Second), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}

// TestHistories replays Pauses of earlier versions and compares what users were shown: the status in each phase, and at the end. The
// process was killed in one of them.
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
