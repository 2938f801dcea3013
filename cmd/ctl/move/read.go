package move

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// viewFold is the state of a move with the status that the daemon's view computes. If an event
// cannot be read, viewFold reports that in the status, and Fold returns an error.
type viewFold struct {
	id   string
	view *runner.Moves
}

func (f *viewFold) Apply(r eventlog.Record) error {
	_ = f.view.Apply(r) // the move's status reports an unreadable event
	return nil
}

func (f *viewFold) Items() (items []*v1alpha1.Move) {
	status, _ := f.view.Status(f.id)
	f.view.ReadState(f.id, func(s *mover.State) {
		if s != nil {
			items = append(items, fromLog(s.Spec, status))
		}
	})
	return items
}

// Fold is the state of a move, computed from its commits. Apply returns an error for an event that
// cannot be read.
type Fold struct {
	id    string
	state mover.State

	seq     uint64
	catalog *eventlog.Catalog[mover.Event]
}

// NewFold returns a Fold without commits.
func NewFold(id string) *Fold { return &Fold{id: id, catalog: catalog()} }

// catalog returns the catalog of moves. All folds share it, because a page holds the folds of all
// moves.
var catalog = sync.OnceValue(mover.NewCatalog) //nolint:gochecknoglobals // immutable

// Apply applies a commit.
func (f *Fold) Apply(r eventlog.Record) error {
	f.seq = r.Seq
	return f.catalog.Fold(r, f.state.Apply)
}

func (f *Fold) resource() *v1alpha1.Move {
	status := mover.Status(&f.state)
	status.MoveID, status.Clusters = f.id, mover.SelectedClusters(&f.state)
	status.LogSequence = int64(f.seq) //nolint:gosec // a sequence stays far below 2^63
	return fromLog(f.state.Spec, status)
}

// fromLog rebuilds a Move from its spec in the log.
func fromLog(spec mover.Spec, status v1alpha1.MoveStatus) *v1alpha1.Move {
	rollback := !spec.KeepFailed
	m := &v1alpha1.Move{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Move"},
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.Name},
		Spec: v1alpha1.MoveSpec{
			Target:    v1alpha1.MoveTarget{KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: spec.Target.SecretName, Key: spec.Target.SecretKey}, AllowInsecure: spec.Target.AllowInsecure},
			Selection: v1alpha1.MoveSelection{Clusters: spec.Clusters, All: spec.All},
			Timeouts: v1alpha1.MoveTimeouts{
				Acknowledge: kit.Duration(spec.Acknowledge), AcknowledgeKinds: kit.Durations(spec.AckKinds),
				Create: kit.Duration(spec.Create), Resume: kit.Duration(spec.Resume),
			},
			DryRun: spec.DryRun, RollbackOnFailure: &rollback, CarryStatus: spec.CarryStatus, AcceptLoss: spec.AcceptLoss,
		},
		Status: status,
	}
	if status.StartedAt != nil {
		m.CreationTimestamp = *status.StartedAt
	}
	return m
}

// finished reports whether nothing more happens without a user.
func finished(m *v1alpha1.Move) bool {
	return m.Status.FinishedAt != nil || m.Status.Phase == mover.PhaseFailed
}

// pastPointOfNoReturn reports whether a Move is verified, so that it can only go forward.
func pastPointOfNoReturn(m *v1alpha1.Move) bool {
	return slices.Contains([]mover.Phase{mover.PhaseVerified, mover.PhaseDeleting, mover.PhaseResuming, mover.PhaseSucceeded}, m.Status.Phase)
}
