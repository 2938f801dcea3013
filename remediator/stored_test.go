package remediator_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/internal/pinned"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestStored checks that stored events still decode to the same values.
func TestStored(t *testing.T) {
	pinned.Events(t, remediator.NewCatalog(), object.Ref{Group: "cluster.x-k8s.io", Kind: "Cluster", Namespace: "fleet", Name: "prod"})
}

// TestHistories replays remediations that earlier versions recorded, some with killed processes, and compares the
// resulting states.
func TestHistories(t *testing.T) {
	pinned.Histories(t, remediator.NewCatalog(), func(_ *testing.T, events []pinned.History[remediator.Event]) any {
		var s remediator.State
		machines := make(map[types.UID]bool)
		for _, e := range events {
			s.Apply(e.Event, e.At)
			if marked, ok := e.Event.(remediator.MachineMarked); ok {
				machines[marked.Machine.UID] = true
			}
		}
		all := make(map[types.UID]any)
		for uid := range machines {
			if status, ok := remediator.Status(&s, uid); ok {
				all[uid] = status
			}
		}
		return all
	})
}
