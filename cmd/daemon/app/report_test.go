package app

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/trust"
)

// TestStall checks that while the log may not be acted on, unfinished objects of every kind report it, and finished
// ones do not.
func TestStall(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "fleet", Name: name} }
	ended := metav1.NewTime(time.Now())
	open := []client.Object{
		&v1alpha1.Move{ObjectMeta: named("open")}, &v1alpha1.WorkflowRun{ObjectMeta: named("open")}, &v1alpha1.Pause{ObjectMeta: named("open")},
		&v1alpha1.BackupSchedule{ObjectMeta: named("open")}, &v1alpha1.SurgeRemediation{ObjectMeta: named("open")},
	}
	over := []client.Object{
		&v1alpha1.Move{ObjectMeta: named("over"), Status: v1alpha1.MoveStatus{FinishedAt: &ended}},
		&v1alpha1.WorkflowRun{ObjectMeta: named("over"), Status: v1alpha1.WorkflowRunStatus{FinishedAt: &ended}},
		&v1alpha1.Pause{ObjectMeta: named("over"), Status: v1alpha1.PauseStatus{FinishedAt: &ended}},
		&v1alpha1.BackupSchedule{ObjectMeta: named("over"), Status: v1alpha1.BackupScheduleStatus{Phase: v1alpha1.BackupEnded}},
		&v1alpha1.SurgeRemediation{ObjectMeta: named("over"), Status: v1alpha1.SurgeRemediationStatus{FinishedAt: &ended}},
	}
	kube := ctrlfake.NewClientBuilder().WithScheme(scheme).WithObjects(open...).WithObjects(over...).WithStatusSubresource(open...).Build()
	r := &report{client: kube, recorder: events.NewFakeRecorder(9), remediation: true}
	fault := &trust.Fault{Reason: trust.WentBack, Message: "the log ends at 3, but 5 was acknowledged", Next: "run `scutectl log reconcile`"}
	if err := r.writeStalled(t.Context(), fault); err != nil {
		t.Fatal(err)
	}
	for i, list := range [][]client.Object{open, over} {
		for _, o := range list {
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			conditions, _ := statusOf(o)
			said := trust.FaultIn(*conditions)
			if (said != nil) != (i == 0) || said != nil && said.Reason != trust.WentBack {
				t.Errorf("%T %s: condition = %v", o, o.GetName(), said)
			}
		}
	}
}
