package access

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/view"
)

// JobEnd returns the type of the condition that ended a Job, and its reason and message. The type
// is "" if the Job has not ended.
func JobEnd(u *unstructured.Unstructured) (end batchv1.JobConditionType, why string) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if status, reason, message := object.Condition(u, string(kind)); status == object.True {
			return kind, strings.TrimSuffix(reason+": "+message, ": ")
		}
	}
	return "", ""
}

// JobPods returns the numbers of active and failed pods of a Job as text.
func JobPods(u *unstructured.Unstructured) string {
	count := func(field string) int64 { n, _, _ := unstructured.NestedInt64(u.Object, "status", field); return n }
	return fmt.Sprintf("%s active, %d failed", view.Count(int(count("active")), "pod"), count("failed"))
}

// MinTTL is the shortest permitted ttlSecondsAfterFinished, in seconds, of a Job that a task waits
// for. The task could miss a Job that is deleted sooner.
const MinTTL = 60

// IsShortLived reports whether an object is a Job that will be deleted less than MinTTL seconds
// after its end.
func IsShortLived(u *unstructured.Unstructured) bool {
	ttl, set, err := unstructured.NestedInt64(u.Object, "spec", "ttlSecondsAfterFinished")
	return RefOf(u).isKind("batch", "Job") && set && err == nil && ttl < MinTTL
}

// FinalState returns the condition with which a Job ended, or the phase in which a pod ended. It
// returns "" for an object that has not ended or is of another kind.
func FinalState(ref ObjectRef, u *unstructured.Unstructured) string {
	switch {
	case ref.isKind("batch", "Job"):
		end, _ := JobEnd(u)
		return string(end)
	case ref.isKind("", "Pod"):
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		if phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
			return phase
		}
	}
	return ""
}
