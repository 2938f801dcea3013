package move

import (
	"context"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// drivenMoves is a log with open moves of the Move's name.
type drivenMoves struct {
	domain
	open, aborted []string
}

func (d *drivenMoves) Open(string, string) []string       { return d.open }
func (*drivenMoves) Throttled(string) supervise.Throttled { return supervise.Throttled{} }
func (*drivenMoves) Status(id string) (v1alpha1.MoveStatus, bool) {
	return v1alpha1.MoveStatus{MoveID: id, Phase: mover.PhaseAwaitingAcks}, true
}

func (d *drivenMoves) Abort(_ context.Context, id, _, _ string) error {
	d.aborted = append(d.aborted, id)
	return nil
}

// TestAMoveWithoutItsResourceIsAborted checks that an open move is aborted if its Move was deleted, because users could
// no longer see or abort it. A recreated Move of the same name is another move.
func TestAMoveWithoutItsResourceIsAborted(t *testing.T) {
	const earlier = "fleet/go/89abcdef"
	for name, c := range map[string]struct {
		gone bool
		want []string
	}{
		"it is gone":                   {true, []string{earlier, v1alpha1.LogID(newMove())}},
		"another one has its name now": {false, []string{earlier}},
	} {
		t.Run(name, func(t *testing.T) {
			log := &drivenMoves{open: []string{earlier, v1alpha1.LogID(newMove())}}
			r, api, m := newReconciling(t, log)
			if c.gone {
				m.Finalizers = nil
				if err := api.Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if err := api.Delete(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(log.aborted, c.want) {
				t.Errorf("aborted %v, want %v", log.aborted, c.want)
			}
		})
	}
}
