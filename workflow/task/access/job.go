package access

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/plural"
	"scute.dev/kube/object"
)

// JobEnd returns the condition that says that a Job has ended, and why. It returns "" for a Job that has not.
func JobEnd(u *unstructured.Unstructured) (end batchv1.JobConditionType, why string) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if status, reason, message := object.Condition(u, string(kind)); status == object.True {
			return kind, strings.TrimSuffix(reason+": "+message, ": ")
		}
	}
	return "", ""
}

// JobPods returns a text with the number of the pods of a Job.
func JobPods(u *unstructured.Unstructured) string {
	count := func(field string) int64 { n, _, _ := unstructured.NestedInt64(u.Object, "status", field); return n }
	return fmt.Sprintf("%s active, %d failed", plural.Of(int(count("active")), "pod"), count("failed"))
}

// LeastTTL is how long a Job that is waited for has to stay after its end, in seconds.
const LeastTTL = 60

// ShortLived says whether an object is a Job that is deleted sooner than LeastTTL after its end.
func ShortLived(u *unstructured.Unstructured) bool {
	ttl, set, err := unstructured.NestedInt64(u.Object, "spec", "ttlSecondsAfterFinished")
	return RefOf(u).is("batch", "Job") && set && err == nil && ttl < LeastTTL
}

// Ended returns how a Job or a pod has ended for good, after which no condition of it changes any more. It returns "" for one that has not, and for any
// other object.
func Ended(ref ObjectRef, u *unstructured.Unstructured) string {
	switch {
	case ref.is("batch", "Job"):
		end, _ := JobEnd(u)
		return string(end)
	case ref.is("", "Pod"):
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		if phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
			return phase
		}
	}
	return ""
}
