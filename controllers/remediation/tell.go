package remediation

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/conditions"
)

// requestConditions says the status in the dialect of kstatus: Reconciling while it goes on by itself, Stalled when it
// needs a human, Ready when the machine is well again, or another one in its place.
func requestConditions(old []metav1.Condition, s *v1alpha1.SurgeRemediationStatus, generation int64) []metav1.Condition {
	ready := s.Phase == v1alpha1.RemediationSucceeded || s.Phase == v1alpha1.RemediationRecovered
	stalled := s.Phase == v1alpha1.RemediationFrozen || s.Phase == v1alpha1.RemediationFailed || s.Phase == v1alpha1.RemediationUnselected ||
		s.Phase == v1alpha1.RemediationCancelled && s.Next != ""
	message := s.Message
	if stalled && s.Next != "" {
		message += "; " + s.Next
	}
	return conditions.Kstatus(old, generation, string(s.Phase),
		conditions.Said{True: ready, Message: s.Message},
		conditions.Said{True: !over(s.Phase) && !stalled, Message: s.Message},
		conditions.Said{True: stalled, Message: message})
}

// noMachine is the status of a request whose Machine does not exist.
func noMachine(request *v1alpha1.SurgeRemediation) v1alpha1.SurgeRemediationStatus {
	s := v1alpha1.SurgeRemediationStatus{
		ObservedGeneration: request.Generation,
		Message:            fmt.Sprintf("there is no Machine %s in namespace %s: nothing is done", request.Name, request.Namespace),
		Next:               "delete this SurgeRemediation; one that you make yourself has the name of its Machine",
	}
	s.Conditions = conditions.Kstatus(request.Status.Conditions, request.Generation, "MachineNotFound",
		conditions.Said{Message: s.Message}, conditions.Said{}, conditions.Said{True: true, Message: s.Message + "; " + s.Next})
	return s
}

// item is one thing to tell by a Kubernetes event.
type item struct{ kind, reason, note string }

// news is what a status says that the one before did not: another phase, or another decision. It compares what was
// published, so a restarted daemon tells nothing twice.
func news(before, after *v1alpha1.SurgeRemediationStatus) []item {
	if before.Phase == after.Phase && before.Decision == after.Decision {
		return nil
	}
	kind := corev1.EventTypeNormal
	switch after.Phase {
	case v1alpha1.RemediationFrozen, v1alpha1.RemediationFailed, v1alpha1.RemediationCancelling, v1alpha1.RemediationCancelled, v1alpha1.RemediationUnselected:
		kind = corev1.EventTypeWarning
	}
	note := after.Message
	if after.Decision != "" {
		note = after.Decision + ": " + note
	}
	if after.Next != "" {
		note += "; next: " + after.Next
	}
	return []item{{kind, string(after.Phase), conditions.Short(note)}}
}

// Marked tells by an event of a Machine whose mark was set, changed or taken off.
func Marked(recorder events.EventRecorder, before, after *clusterv1.Machine) {
	n, ok := marked(before.Annotations[v1alpha1.UnhealthyAnnotation], after.Annotations[v1alpha1.UnhealthyAnnotation])
	if ok {
		recorder.Eventf(after, nil, n.kind, n.reason, "Mark", "%s", n.note)
	}
}

// marked is what is new in a mark; false when there is nothing to tell, or it is no mark that scute wrote.
func marked(before, after string) (item, bool) {
	var was, is v1alpha1.UnhealthyMark
	if after == "" {
		return item{corev1.EventTypeNormal, "MachineMarkCleared", "the mark is off: it is well again, or nobody looks after it any more"}, before != ""
	}
	if err := json.Unmarshal([]byte(after), &is); err != nil || is.State == "" {
		return item{}, false
	}
	if err := json.Unmarshal([]byte(before), &was); err == nil && was.State == is.State && was.Reason == is.Reason {
		return item{}, false
	}
	note := fmt.Sprintf("%s since %s, said by %s", is.Reason, is.Since.UTC().Format("15:04:05"), is.Source)
	return item{corev1.EventTypeWarning, "Machine" + is.State, conditions.Short(note)}, true
}
