package remediation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
)

// requestConditions translates the status to kstatus: Reconciling while it continues by itself, Stalled if it needs a user, and Ready if the machine
// is healthy again or replaced.
func requestConditions(old []metav1.Condition, s *v1alpha1.SurgeRemediationStatus, generation int64) []metav1.Condition {
	ready := s.Phase == v1alpha1.RemediationSucceeded || s.Phase == v1alpha1.RemediationRecovered
	stalled := s.Phase == v1alpha1.RemediationFrozen || s.Phase == v1alpha1.RemediationFailed || s.Phase == v1alpha1.RemediationUnselected ||
		s.Phase == v1alpha1.RemediationCancelled && s.Next != ""
	message := s.Message
	if stalled && s.Next != "" {
		message += "; " + s.Next
	}
	return resource.Kstatus(old, generation, string(s.Phase),
		resource.Value{True: ready, Message: s.Message},
		resource.Value{True: !isFinal(s.Phase) && !stalled, Message: s.Message},
		resource.Value{True: stalled, Message: message})
}

// noMachineStatus returns the status of a request whose Machine does not exist.
func noMachineStatus(request *v1alpha1.SurgeRemediation) v1alpha1.SurgeRemediationStatus {
	s := v1alpha1.SurgeRemediationStatus{
		ObservedGeneration: request.Generation,
		Message:            fmt.Sprintf("Machine %s does not exist in namespace %s; scute does nothing", request.Name, request.Namespace),
		Next:               "delete this SurgeRemediation; a SurgeRemediation must have the name of its Machine",
	}
	s.Conditions = resource.Kstatus(request.Status.Conditions, request.Generation, "MachineNotFound",
		resource.Value{Message: s.Message}, resource.Value{}, resource.Value{True: true, Message: s.Message + "; " + s.Next})
	return s
}

// eventContent is the content of a Kubernetes event.
type eventContent struct{ kind, reason, note string }

// newEvent returns the event of a status change for a machine that the log does not know: no policy selects it, or its policy cannot be read. The
// EventReporter reports what the log knows. news compares with the published status, so a restarted daemon reports nothing twice.
func newEvent(before, after *v1alpha1.SurgeRemediationStatus) (eventContent, bool) {
	if before.Phase == after.Phase || after.RemediationID != "" || after.Phase != v1alpha1.RemediationUnselected && after.Phase != v1alpha1.RemediationFrozen {
		return eventContent{}, false
	}
	return eventContent{corev1.EventTypeWarning, "Remediation" + string(after.Phase), resource.TruncateNote(after.Message + "; next: " + after.Next)}, true
}
