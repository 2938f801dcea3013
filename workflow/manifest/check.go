package manifest

import (
	"context"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// Check returns the problems of a manifest that can be found without reading from a cluster.
func (e *Env) Check(namespace, name string, spec *v1alpha1.WorkflowRunSpec) []workflow.Problem {
	blind := *e
	blind.manifestOnly = true
	_, problems, err := blind.Definition(context.Background(), namespace, name, spec)
	if err != nil { // never: no cluster was asked
		problems = append(problems, workflow.Problem{Field: "spec", Message: err.Error(), Remedy: "correct the manifest"})
	}
	return slices.DeleteFunc(problems, func(p workflow.Problem) bool { return concernsUnread(p, spec) })
}
