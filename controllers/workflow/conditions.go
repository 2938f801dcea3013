package workflow

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/conditions"
	"scute.dev/workflow/runner"
)

// kstatus says the status in the dialect of kstatus: Reconciling while the run goes on by itself, Stalled when it needs a
// human or did not end as asked, Ready when it did. A run whose failures were to be ignored ended as asked.
func kstatus(old []metav1.Condition, s v1alpha1.WorkflowStatus, generation int64) []metav1.Condition {
	ready, going := false, false
	switch s.Phase {
	case v1alpha1.RunSucceeded, v1alpha1.RunDegraded:
		ready = true
	case v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunRollingBack:
		going = true
	}
	return conditions.Kstatus(old, generation, string(s.Phase),
		conditions.Said{True: ready, Message: s.Message},
		conditions.Said{True: going, Message: s.Message},
		conditions.Said{True: !ready && !going, Message: cmp.Or(s.Next, s.Message)})
}

// throttled adds the condition Throttled to a list. A run that never was throttled does not have it.
func throttled(list []metav1.Condition, why runner.Throttled, generation int64) []metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionThrottled, Status: metav1.ConditionTrue, Reason: why.Reason, Message: why.Message, ObservedGeneration: generation,
	}
	if why.Reason == "" {
		if meta.FindStatusCondition(list, c.Type) == nil {
			return list
		}
		c.Status, c.Reason = metav1.ConditionFalse, "NotThrottled"
	}
	meta.SetStatusCondition(&list, c)
	return list
}
