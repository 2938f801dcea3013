package move

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// requestCounter is a log without moves that counts its calls.
type requestCounter struct {
	fullLog
	requested, recovered int
}

func (c *requestCounter) Request(context.Context, string, string, mover.Spec) error {
	c.requested++
	return nil
}

func (c *requestCounter) Recover(context.Context, string, string, mover.Spec, mover.LogLost) error {
	c.recovered++
	return nil
}

// TestQuota checks that a Move does not start while its namespace is at its quota, and reports why. A started Move is
// still recovered.
func TestQuota(t *testing.T) {
	over, log := "its quota", &requestCounter{}
	r, c, m := newReconciling(t, log)
	r.LogID, r.Quota = "one", func(string) string { return over }
	turn := func() ctrl.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		return result
	}
	result := turn()
	why := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionThrottled)
	if log.requested != 0 || result.RequeueAfter <= 0 || why == nil || why.Reason != supervise.QuotaExceeded || !strings.Contains(m.Status.Message, over) {
		t.Errorf("requested %d times, requeued after %s, condition %+v, message %q", log.requested, result.RequeueAfter, why, m.Status.Message)
	}
	over = ""
	turn() // the first turn writes the ID of the log
	if turn(); log.requested != 1 {
		t.Errorf("below the quota: requested %d times, want 1", log.requested)
	}
	over, m.Status.Phase = "its quota", mover.PhaseCreating
	if err := c.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if turn(); log.recovered != 1 || log.requested != 1 {
		t.Errorf("started move: recovered %d times, requested %d times, want 1 of each", log.recovered, log.requested)
	}
}
