package manifest

import (
	"context"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// Check finds what can be told of a manifest without asking any cluster: what it refers to there is not read.
func (e *Env) Check(namespace, name string, spec *v1alpha1.WorkflowRunSpec) []workflow.Problem {
	blind := *e
	blind.blind = true
	_, problems, err := blind.Definition(context.Background(), namespace, name, spec)
	if err != nil { // nothing was asked
		problems = append(problems, workflow.Problem{Field: "spec", Message: err.Error(), Remedy: "correct it"})
	}
	return slices.DeleteFunc(problems, func(p workflow.Problem) bool { return unseen(p, spec) })
}
