package workflow

import (
	"fmt"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/changes"
)

// runAnnotation names a run that is in the log already, or will be soon: `scutectl log push` sets it on the WorkflowRun of a
// run that was begun elsewhere.
const runAnnotation = "scute.dev/run"

// ID names the run of a WorkflowRun in the log: namespace/name/start of the UID. A WorkflowRun made again under the same name is
// another run. adopted says that the WorkflowRun names a run that somebody else has begun; an error, that it must not.
func ID(w *v1alpha1.WorkflowRun) (id string, adopted bool, err error) {
	own := changes.ID(w)
	named := w.Annotations[runAnnotation]
	switch {
	// A task of a run that applies a WorkflowRun marks it with the same annotation, and with one part more.
	case named == "" || named == own || strings.Count(named, "/") > 2:
		return own, false, nil
	// The run's tasks act in its namespace with its ServiceAccount: no other resource may speak for it.
	case !strings.HasPrefix(named, w.Namespace+"/"+w.Name+"/"):
		return own, false, fmt.Errorf("metadata.annotations[%s]: the run %q is not one of %s/%s: give the WorkflowRun the namespace and the name of the run", runAnnotation, named, w.Namespace, w.Name)
	default:
		return named, true, nil
	}
}
