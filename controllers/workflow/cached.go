package workflow

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
)

// specBytes is an annotation of WorkflowRuns in the cache, and of none elsewhere: about the size of the spec.
const specBytes = "scute.dev/spec-bytes"

// Cached makes of a WorkflowRun what the cache retains of it: what is looked at each time. A tenant may make hundreds of them, of more than a MiB
// each; the rest is read when a run begins. All writes are patches of what differs from what is cached, so that none has to do with the rest. What
// was made of one before stays as it is. Of the other kinds the cache retains what v1alpha1.Slim leaves.
func Cached(o any) (any, error) {
	w, ok := o.(*v1alpha1.WorkflowRun)
	if !ok { // another kind, or one that is gone
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
	if size := bytes(&w.Spec); size > 0 {
		annotations[specBytes] = strconv.Itoa(size)
	}
	w.Annotations, w.Labels = annotations, nil
	w.Spec = v1alpha1.WorkflowRunSpec{Suspend: w.Spec.Suspend}
	if unread := w.Unreadable.Spec; unread != nil {
		w.Unreadable.Spec = &v1alpha1.UnreadablePart{Field: unread.Field, Problem: unread.Problem}
	}
	return w, nil
}

// bytes is about the size of a spec.
func bytes(spec *v1alpha1.WorkflowRunSpec) int {
	const ofTask = 200 // names, and what a task needs
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
