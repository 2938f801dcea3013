package moves

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/source"
	"scute.dev/mover"
)

// Source is where Moves are read from.
type Source = source.Source[*v1alpha1.Move]

const noun = "move"

// InCluster reads the resource. notice is told when a watch breaks and is taken up again; nil tells nobody.
func InCluster(c *reach.Cluster, notice func(error)) Source {
	return &source.Cluster[*v1alpha1.Move, *v1alpha1.Move]{
		Cluster: c, Noun: noun, Notice: notice,
		New:     func() *v1alpha1.Move { return &v1alpha1.Move{} },
		NewList: func() client.ObjectList { return &v1alpha1.MoveList{} },
		Of:      func(m *v1alpha1.Move) *v1alpha1.Move { return m },
	}
}

// Over says that nothing more happens to a Move by itself.
func Over(m *v1alpha1.Move) bool {
	return m.Status.FinishedAt != nil || m.Status.Phase == mover.PhaseFailed
}

// PastReturn says that a Move is verified: it can only go forward.
func PastReturn(m *v1alpha1.Move) bool {
	return slices.Contains([]mover.Phase{mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseSucceeded}, m.Status.Phase)
}
