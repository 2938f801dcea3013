package move

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/mover"
)

// kstatus returns the kstatus conditions of a status: Reconciling while the move continues, Stalled if it needs a person, Ready if it ended as
// requested.
func kstatus(old []metav1.Condition, s v1alpha1.MoveStatus, generation int64) []metav1.Condition {
	over := s.FinishedAt != nil
	reason := string(s.Phase)
	if s.Stranded {
		reason = "Stranded"
	}
	return resource.Kstatus(old, generation, reason,
		resource.Value{True: s.Phase == mover.PhaseSucceeded && s.Next == "", Message: s.Message},
		resource.Value{True: !over && !s.Stranded && s.Phase != mover.PhaseFailed, Message: s.Message},
		resource.Value{True: s.Next != "" && (s.Stranded || over || s.Phase == mover.PhaseFailed), Message: s.Next})
}
