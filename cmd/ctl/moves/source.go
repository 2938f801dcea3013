package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

// Source is where Moves are read from.
type Source interface {
	// Get reads one; ErrNotFound if there is none.
	Get(ctx context.Context, key types.NamespacedName) (*v1alpha1.Move, error)
	// List reads those of a namespace, "" for all, by namespace and name.
	List(ctx context.Context, namespace string) ([]v1alpha1.Move, error)
	// Watch calls fn with the Move as it is, and again whenever it has changed, until fn says that it has seen
	// enough. A broken connection is restored.
	Watch(ctx context.Context, key types.NamespacedName, fn func(*v1alpha1.Move) (enough bool)) error
}

// ErrNotFound says that there is no Move of that name.
var ErrNotFound = errors.New("there is no such Move")

// ErrStill says that a Move is not over and that nothing can change it while we look: nobody drives it.
var ErrStill = errors.New("no daemon drives it: this is the log of a stopped one")

func notFound(key types.NamespacedName, where string) error {
	if key.Namespace == "" {
		return fmt.Errorf("move %s: %w %s", key.Name, ErrNotFound, where)
	}
	return fmt.Errorf("move %s in namespace %s: %w %s", key.Name, key.Namespace, ErrNotFound, where)
}

// Over says that nothing more happens to a Move by itself.
func Over(m *v1alpha1.Move) bool {
	return m.Status.FinishedAt != nil || m.Status.Phase == mover.PhaseFailed
}

// PastReturn says that a Move is verified: it can only go forward.
func PastReturn(m *v1alpha1.Move) bool {
	return slices.Contains([]mover.Phase{mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseSucceeded}, m.Status.Phase)
}
