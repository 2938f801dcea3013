package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/backup/schedule"
	"scute.dev/controllers/controllertest"
	"scute.dev/internal/supervise"
)

// configuredSchedule counts the schedules that are written to the log. The view has either an
// earlier generation of the schedule or none.
type configuredSchedule struct {
	endedSchedule
	state      *schedule.State
	configured int
}

func (w *configuredSchedule) ReadState(_ string, fn func(*schedule.State)) { fn(w.state) }

func (w *configuredSchedule) Configure(context.Context, string, string, schedule.Spec, string) error {
	w.configured++
	return nil
}

func (w *configuredSchedule) Status(string) (s v1alpha1.BackupScheduleStatus, known bool) {
	if w.state == nil {
		return s, false
	}
	return schedule.Status(w.state, time.Now()), true
}

func (w *configuredSchedule) Recall(context.Context, string) (s v1alpha1.BackupScheduleStatus, known bool, err error) {
	return s, false, nil
}

// TestQuota checks that nothing is written to the log while the namespace is at its quota, however often a
// BackupSchedule changes.
func TestQuota(t *testing.T) {
	for name, state := range map[string]*schedule.State{"new": nil, "changed": {Spec: schedule.Spec{Namespace: "fleet", Name: "nightly"}}} {
		t.Run(name, func(t *testing.T) {
			b := validSchedule()
			b.Generation = 7
			b.Annotations = map[string]string{v1alpha1.AnnotationBackUpNow: "please"}
			api := controllertest.Client(t, b)
			over, log := "its quota", &configuredSchedule{state: state}
			r := &Reconciler{Base: controllertest.Base(api), Schedules: log}
			r.Quota = func(string) string { return over }
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}
			result, err := r.Reconcile(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), request.NamespacedName, b); err != nil {
				t.Fatal(err)
			}
			c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionThrottled)
			if log.configured != 0 || result.RequeueAfter <= 0 || c == nil || c.Reason != supervise.QuotaExceeded || !strings.Contains(c.Message, over) {
				t.Errorf("written %d times, requeued after %s, condition %+v", log.configured, result.RequeueAfter, c)
			}
			over = ""
			if _, err := r.Reconcile(t.Context(), request); err != nil || log.configured != 1 {
				t.Errorf("below the quota: written %d times, error %v", log.configured, err)
			}
		})
	}
}
