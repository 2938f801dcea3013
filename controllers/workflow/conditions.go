package workflow

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
)

// kstatus returns the kstatus conditions of a status: Reconciling while the run continues automatically, Stalled if it needs a person or did not end
// as requested, Ready if it did. A run whose failures are ignored by policy ended as requested.
func kstatus(old []metav1.Condition, s v1alpha1.WorkflowRunStatus, generation int64) []metav1.Condition {
	ready, going := false, false
	switch s.Phase {
	case v1alpha1.RunSucceeded, v1alpha1.RunDegraded:
		ready = true
	case v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunRollingBack:
		going = true
	}
	return resource.Kstatus(old, generation, string(s.Phase),
		resource.Value{True: ready, Message: s.Message},
		resource.Value{True: going, Message: s.Message},
		resource.Value{True: !ready && !going, Message: cmp.Or(s.Next, s.Message)})
}
