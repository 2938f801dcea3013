package move

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

// conditions says the status in the dialect of kstatus: Reconciling while there is work, Stalled when a human is
// needed, Ready when it ended as asked.
func conditions(old []metav1.Condition, s v1alpha1.MoveStatus, generation int64) []metav1.Condition {
	list := slices.Clone(old)
	set := func(conditionType string, status bool, message string) {
		c := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: string(cmp.Or(s.Phase, "Unknown")), Message: short(message), ObservedGeneration: generation}
		if status {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&list, c)
	}
	over := s.FinishedAt != nil
	set(v1alpha1.ConditionReady, s.Phase == mover.PhaseSucceeded, s.Message)
	set(v1alpha1.ConditionReconciling, !over && s.Phase != mover.PhaseFailed, s.Message)
	set(v1alpha1.ConditionStalled, s.Next != "" && (s.Phase == mover.PhaseFailed || s.Phase == mover.PhaseRolledBack), s.Next)
	return list
}
