package pause

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/internal/supervise"
	"scute.dev/pause/request"
)

// requestCounter is a log without pauses that counts requests.
type requestCounter struct {
	forgottenPause
	requested int
}

func (*requestCounter) Recall(context.Context, string) (v1alpha1.PauseStatus, bool, error) {
	return v1alpha1.PauseStatus{}, false, nil
}

func (c *requestCounter) Request(context.Context, string, string, request.Spec) error {
	c.requested++
	return nil
}

// TestQuota checks that a Pause does not start while its namespace is at its quota, and reports why. A started Pause is
// still requested.
func TestQuota(t *testing.T) {
	p := &v1alpha1.Pause{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "maintenance", UID: "0123456789", Generation: 1, Finalizers: []string{finalizer}},
		Spec:       v1alpha1.PauseSpec{Clusters: []string{"prod"}},
	}
	c := controllertest.Client(t, p)
	log := &requestCounter{}
	r := &Reconciler{Base: controllertest.Base(c), Pauses: log}
	r.Quota = func(string) string { return "its quota" }
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}
	result, err := r.Reconcile(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), req.NamespacedName, p); err != nil {
		t.Fatal(err)
	}
	why := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionThrottled)
	if log.requested != 0 || result.RequeueAfter <= 0 || why == nil || why.Reason != supervise.QuotaExceeded || !strings.Contains(p.Status.Message, "its quota") {
		t.Errorf("requested %d times, requeued after %s, condition %+v, message %q", log.requested, result.RequeueAfter, why, p.Status.Message)
	}
	p.Status.PauseID = v1alpha1.LogID(p)
	if err := c.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), req); err != nil || log.requested != 1 {
		t.Errorf("started Pause: requested %d times, want 1; error %v", log.requested, err)
	}
}
