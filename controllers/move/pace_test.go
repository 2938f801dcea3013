package move

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// progressingMove is a move whose status the test sets.
type progressingMove struct {
	domain
	status v1alpha1.MoveStatus
}

func (*progressingMove) Open(string, string) []string { return nil }
func (p *progressingMove) Status(id string) (v1alpha1.MoveStatus, bool) {
	p.status.MoveID = id
	return p.status, true
}
func (*progressingMove) Throttled(string) supervise.Throttled { return supervise.Throttled{} }

// TestProgressIsWrittenOnceASecond checks that changed counts are written at most once a second,
// and that a new phase is written at once.
func TestProgressIsWrittenOnceASecond(t *testing.T) {
	begun := metav1.NewTime(time.Now().Truncate(time.Second).Add(123 * time.Millisecond)) // finer than the stored precision
	moves := &progressingMove{status: v1alpha1.MoveStatus{StartedAt: &begun}}
	r, c, m := newReconciling(t, moves)
	key := client.ObjectKeyFromObject(m)
	look := func(phase v1alpha1.MovePhase, created int) (v1alpha1.MoveStatus, time.Duration) {
		t.Helper()
		moves.status.Phase, moves.status.Counts.Created = phase, created
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
		return m.Status, result.RequeueAfter
	}
	if s, _ := look(mover.PhaseCreating, 1); s.Counts.Created != 1 {
		t.Fatalf("first status = %+v", s)
	}
	r.pace.Delay(key, string(mover.PhaseCreating), 0) // the last write was less than a second ago
	s, again := look(mover.PhaseCreating, 2)
	if s.Counts.Created != 1 || again <= 0 {
		t.Errorf("%d objects within the second, requeued after %s, want 1 object and a delay", s.Counts.Created, again)
	}
	if s, _ = look(mover.PhaseVerified, 3); s.Phase != mover.PhaseVerified || s.Counts.Created != 3 {
		t.Errorf("status of another phase = %+v", s)
	}
	r.pace.Forget(key) // the last write was more than a second ago
	if s, again = look(mover.PhaseVerified, 4); s.Counts.Created != 4 || again != 0 {
		t.Errorf("after the second: %d objects, requeued after %s", s.Counts.Created, again)
	}
}
