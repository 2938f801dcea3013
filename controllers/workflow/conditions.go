package workflow

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

// conditions says the status in the dialect of kstatus: Reconciling while the run goes on by itself, Stalled when it needs
// a human or did not end as asked, Ready when it did. A run whose failures were to be ignored ended as asked.
func conditions(old []metav1.Condition, s v1alpha1.WorkflowStatus, generation int64) []metav1.Condition {
	list := slices.Clone(old)
	set := func(conditionType string, status bool, message string) {
		c := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: string(cmp.Or(s.Phase, "Unknown")), Message: message, ObservedGeneration: generation}
		if status {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&list, c)
	}
	ready, going := false, false
	switch s.Phase {
	case v1alpha1.RunSucceeded, v1alpha1.RunDegraded:
		ready = true
	case v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunRollingBack:
		going = true
	}
	set(v1alpha1.ConditionReady, ready, s.Message)
	set(v1alpha1.ConditionReconciling, going, s.Message)
	set(v1alpha1.ConditionStalled, !ready && !going, cmp.Or(s.Next, s.Message))
	return list
}
