package v1alpha1

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunAnnotation on a WorkflowRun is the ID of a run that an earlier WorkflowRun of the same name
// began. The WorkflowRun continues this run.
const RunAnnotation = "scute.dev/run"

// LogID returns the ID of a resource in the log: NAMESPACE/NAME/START-OF-UID. A resource that is
// created again with the same name has another ID.
func LogID(o metav1.Object) string {
	uid := string(o.GetUID())
	return o.GetNamespace() + "/" + o.GetName() + "/" + uid[:min(len(uid), 8)]
}

// LogID returns the ID of a WorkflowRun's run in the log. named is true if the ID is that of
// RunAnnotation. LogID fails if the WorkflowRun must not refer to that run.
func (w *WorkflowRun) LogID() (id string, named bool, err error) {
	own := LogID(w)
	run := w.Annotations[RunAnnotation]
	switch {
	// A WorkflowRun that a task of a run applies has the same annotation, with one more part.
	case run == "" || run == own || strings.Count(run, "/") > 2:
		return own, false, nil
	// The tasks of the run act in its namespace with its ServiceAccount, so no WorkflowRun of
	// another namespace or name may refer to it.
	case !strings.HasPrefix(run, w.Namespace+"/"+w.Name+"/"):
		return own, false, fmt.Errorf("metadata.annotations[%s]: the run %q is not one of %s/%s: give the WorkflowRun the namespace and the name of the run", RunAnnotation, run, w.Namespace, w.Name)
	default:
		return run, true, nil
	}
}
