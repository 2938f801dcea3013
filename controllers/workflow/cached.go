package workflow

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

// specBytes is an annotation that only cached WorkflowRuns have: the approximate size of the spec in bytes.
const specBytes = "scute.dev/spec-bytes"

// Cached reduces a WorkflowRun to the fields that every reconcile reads, because a tenant may create
// hundreds of WorkflowRuns of more than 1 MiB each. The other fields are read when the run starts.
// Writes are patches computed from the cached object, so they do not remove the other fields.
// Cached is idempotent. It reduces other kinds with v1alpha1.Slim.
func Cached(o any) (any, error) {
	w, ok := o.(*v1alpha1.WorkflowRun)
	if !ok { // another kind, or a deleted object
		if object, ok := o.(metav1.Object); ok {
			v1alpha1.Slim(object)
		}
		return o, nil
	}
	v1alpha1.Slim(w)
	annotations := make(map[string]string)
	for _, name := range []string{v1alpha1.RunAnnotation, v1alpha1.AdoptedAnnotation, specBytes} {
		if value, ok := w.Annotations[name]; ok {
			annotations[name] = value
		}
	}
	if size := approximateSize(&w.Spec); size > 0 {
		annotations[specBytes] = strconv.Itoa(size)
	}
	w.Annotations, w.Labels = annotations, nil
	w.Spec = v1alpha1.WorkflowRunSpec{Suspend: w.Spec.Suspend}
	if unread := w.Unreadable.Spec; unread != nil {
		w.Unreadable.Spec = &v1alpha1.UnreadablePart{Field: unread.Field, Problem: unread.Problem}
	}
	return w, nil
}

func approximateSize(spec *v1alpha1.WorkflowRunSpec) int {
	const ofTask = 200 // names and other fields of a task
	size := len(spec.Tasks) * ofTask
	for i := range spec.Tasks {
		if with := spec.Tasks[i].With; with != nil {
			size += len(with.Raw)
		}
	}
	if spec.Workflow != nil && spec.Workflow.Params != nil {
		size += len(spec.Workflow.Params.Raw)
	}
	return size
}
