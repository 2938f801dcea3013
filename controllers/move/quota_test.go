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

// counting is a log without a move that counts what it is told.
type counting struct {
	fullLog
	requested, recovered int
}

func (c *counting) Request(context.Context, string, string, mover.Spec) error {
	c.requested++
	return nil
}

func (c *counting) Recover(context.Context, string, string, mover.Spec, mover.LogLost) error {
	c.recovered++
	return nil
}

// TestQuota: at the quota of its namespace a Move does not begin, and says why. One that had begun is recovered all the same.
func TestQuota(t *testing.T) {
	over, log := "its quota", &counting{}
	r, c, m := reconciling(t, log)
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
		t.Errorf("requested %d times, again in %s, condition %+v, message %q", log.requested, result.RequeueAfter, why, m.Status.Message)
	}
	over = ""
	turn() // the ID of the log comes first
	if turn(); log.requested != 1 {
		t.Errorf("below the quota it was requested %d times", log.requested)
	}
	over, m.Status.Phase = "its quota", mover.PhaseCreating
	if err := c.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if turn(); log.recovered != 1 || log.requested != 1 {
		t.Errorf("one that had begun was recovered %d times, requested %d times", log.recovered, log.requested)
	}
}
