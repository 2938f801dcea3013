package move

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

func newMove() *v1alpha1.Move {
	return &v1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "go", UID: "0123456789"},
		Spec: v1alpha1.MoveSpec{
			Target:    v1alpha1.MoveTarget{KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: "there"}},
			Selection: v1alpha1.MoveSelection{Clusters: []string{"a", "b"}},
		},
	}
}

func TestSpec(t *testing.T) {
	want := mover.Spec{
		Namespace: "fleet", Name: "go", Clusters: []string{"a", "b"}, Target: mover.Target{SecretName: "there", SecretKey: "value"},
		Acknowledge: mover.Duration(5 * time.Minute), Create: mover.Duration(30 * time.Minute), Resume: mover.Duration(10 * time.Minute),
	}
	if diff := cmp.Diff(want, Spec(newMove())); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}

	m, no := newMove(), false
	m.Spec = v1alpha1.MoveSpec{
		Target:    v1alpha1.MoveTarget{KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: "there", Key: "kubeconfig"}},
		Selection: v1alpha1.MoveSelection{All: true}, DryRun: true, RollbackOnFailure: &no, CarryStatus: []string{"X.y"}, Abort: true,
		Timeouts: v1alpha1.MoveTimeouts{
			Acknowledge: &v1alpha1.Duration{Duration: time.Minute}, Create: &v1alpha1.Duration{Duration: time.Hour}, Resume: &v1alpha1.Duration{Duration: time.Second},
			AcknowledgeKinds: map[string]v1alpha1.Duration{"X.y": {Duration: 2 * time.Minute}},
		},
	}
	want = mover.Spec{
		Namespace: "fleet", Name: "go", All: true, Target: mover.Target{SecretName: "there", SecretKey: "kubeconfig"},
		DryRun: true, KeepFailed: true, CarryStatus: []string{"X.y"},
		Acknowledge: mover.Duration(time.Minute), Create: mover.Duration(time.Hour), Resume: mover.Duration(time.Second),
		AckKinds: map[string]mover.Duration{"X.y": mover.Duration(2 * time.Minute)},
	}
	if diff := cmp.Diff(want, Spec(m)); diff != "" {
		t.Errorf("with all fields set (-want +got):\n%s", diff)
	}
	yes := true
	if m.Spec.RollbackOnFailure = &yes; Spec(m).KeepFailed {
		t.Error("KeepFailed = true with RollbackOnFailure")
	}
}

func TestID(t *testing.T) {
	m := newMove()
	if id := v1alpha1.LogID(m); id != "fleet/go/01234567" {
		t.Errorf("LogID = %q", id)
	}
	again := newMove()
	again.UID = "9876543210"
	if v1alpha1.LogID(m) == v1alpha1.LogID(again) {
		t.Error("a recreated Move has the same LogID")
	}
	m.UID = "short"
	if id := v1alpha1.LogID(m); id != "fleet/go/short" {
		t.Errorf("LogID = %q", id)
	}
}

func TestConditions(t *testing.T) {
	over := metav1.Now()
	for name, c := range map[string]struct {
		status v1alpha1.MoveStatus
		want   map[string]metav1.ConditionStatus
	}{
		"under way": {
			v1alpha1.MoveStatus{Phase: mover.PhaseCreating, Message: "creating"},
			map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "True", v1alpha1.ConditionStalled: "False"},
		},
		"succeeded": {
			v1alpha1.MoveStatus{Phase: mover.PhaseSucceeded, FinishedAt: &over},
			map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "True", v1alpha1.ConditionReconciling: "False", v1alpha1.ConditionStalled: "False"},
		},
		"refused": {
			v1alpha1.MoveStatus{Phase: mover.PhaseFailed, FinishedAt: &over, Next: "fix it"},
			map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "False", v1alpha1.ConditionStalled: "True"},
		},
		"failed and left": {
			v1alpha1.MoveStatus{Phase: mover.PhaseFailed, Next: "set spec.abort"},
			map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "False", v1alpha1.ConditionStalled: "True"},
		},
		"rolled back": {
			v1alpha1.MoveStatus{Phase: mover.PhaseRolledBack, FinishedAt: &over},
			map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "False", v1alpha1.ConditionStalled: "False"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := kstatus(nil, c.status, 3)
			got := make(map[string]metav1.ConditionStatus)
			for _, condition := range list {
				got[condition.Type] = condition.Status
				if condition.ObservedGeneration != 3 || condition.Reason == "" {
					t.Errorf("%s: ObservedGeneration = %d, Reason = %q", condition.Type, condition.ObservedGeneration, condition.Reason)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
