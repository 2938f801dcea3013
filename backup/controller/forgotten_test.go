package controller

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/backup/schedule"
	"scute.dev/controllers/controllertest"
	"scute.dev/internal/supervise"
)

// endedSchedule is a log with an ended schedule, and a view that either knows or has forgotten it.
type endedSchedule struct {
	Schedules
	known   bool
	dropped error // the error of Configure
}

func (*endedSchedule) Open(string, string) []string                 { return nil }
func (*endedSchedule) Throttled(string) (none supervise.Throttled)  { return none }
func (*endedSchedule) ReadState(_ string, fn func(*schedule.State)) { fn(nil) }
func (*endedSchedule) status(id string) (s v1alpha1.BackupScheduleStatus) {
	s.Phase, s.ScheduleID = v1alpha1.BackupEnded, id
	return s
}

func (e *endedSchedule) Configure(context.Context, string, string, schedule.Spec, string) error {
	return e.dropped // nil because the schedule has ended
}

func (e *endedSchedule) Status(id string) (v1alpha1.BackupScheduleStatus, bool) {
	return e.status(id), e.known
}

func (e *endedSchedule) Recall(_ context.Context, id string) (v1alpha1.BackupScheduleStatus, bool, error) {
	return e.status(id), true, nil
}

// TestAScheduleThatIsHereAgain checks that a BackupSchedule that has ended in the log, but exists again because etcd
// was restored from a backup, gets the status Ended, whether the view has forgotten it or not.
func TestAScheduleThatIsHereAgain(t *testing.T) {
	for name, schedules := range map[string]*endedSchedule{"known": {known: true}, "forgotten": {}} {
		b := validSchedule()
		b.Status.Phase, b.Status.ScheduleID, b.Status.ObservedGeneration = v1alpha1.BackupScheduled, v1alpha1.LogID(b), 3
		b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Scheduled", LastTransitionTime: metav1.Now()}}
		api := controllertest.Client(t, b)
		r := &Reconciler{Base: controllertest.Base(api), Schedules: schedules}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
		s := b.Status
		if s.Phase != v1alpha1.BackupEnded || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) || !strings.Contains(s.Next, "create it again") {
			t.Errorf("%s: status = %+v", name, s)
		}
	}
}
