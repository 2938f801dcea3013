package v1alpha1

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunAnnotation on a WorkflowRun names a run that is in the log already, under the ID of an earlier WorkflowRun of this name.
const RunAnnotation = "scute.dev/run"

// LogID names a resource in the log: NAMESPACE/NAME/START-OF-UID. A resource made again under the same name has another ID.
func LogID(o metav1.Object) string {
	uid := string(o.GetUID())
	return o.GetNamespace() + "/" + o.GetName() + "/" + uid[:min(len(uid), 8)]
}

// LogID names the run of a WorkflowRun in the log. named is true if RunAnnotation names a run that was begun elsewhere; the error is
// that it must not name that run.
func (w *WorkflowRun) LogID() (id string, named bool, err error) {
	own := LogID(w)
	run := w.Annotations[RunAnnotation]
	switch {
	// A task of a run that applies a WorkflowRun marks it with the same annotation, and with one part more.
	case run == "" || run == own || strings.Count(run, "/") > 2:
		return own, false, nil
	// The run's tasks act in its namespace with its ServiceAccount: no other resource may speak for it.
	case !strings.HasPrefix(run, w.Namespace+"/"+w.Name+"/"):
		return own, false, fmt.Errorf("metadata.annotations[%s]: the run %q is not one of %s/%s: give the WorkflowRun the namespace and the name of the run", RunAnnotation, run, w.Namespace, w.Name)
	default:
		return run, true, nil
	}
}
