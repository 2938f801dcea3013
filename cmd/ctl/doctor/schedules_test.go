package doctor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

func TestSchedulesThatFail(t *testing.T) {
	schedule := func(name string, ready metav1.ConditionStatus) *v1alpha1.BackupSchedule {
		b := &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, CreationTimestamp: metav1.NewTime(at().Add(-time.Hour))}}
		if ready != "" {
			b.Status.Phase, b.Status.Message = v1alpha1.BackupFailing, "the last backup failed: it is away"
			b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}
		}
		return b
	}
	late := schedule("late", metav1.ConditionFalse)
	late.Status.LastSuccessfulTime = &metav1.Time{Time: at().Add(-5 * time.Minute)}
	late.Status.Next = "correct it"
	v := newDiagnosis(nil)
	var got []string
	for _, b := range []*v1alpha1.BackupSchedule{schedule("unheard", ""), late, schedule("never", metav1.ConditionFalse), schedule("well", metav1.ConditionTrue)} {
		if r := v.checkObject(kindOf(v, "BackupSchedule"), b, statusOf(b)); r != nil {
			got = append(got, r.Level.String()+" "+r.Message+" -> "+r.Remedy)
		}
	}
	want := []string{
		"problem fleet/unheard was created 60m ago and no daemon has acted on it -> check scuted above, and its log lines",
		"problem fleet/late is Failing: the last backup failed: it is away; the last success was 5m ago -> correct it; `scutectl describe backupschedule late -n fleet`",
		"problem fleet/never is Failing: the last backup failed: it is away; no backup has succeeded yet -> `scutectl describe backupschedule never -n fleet`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
