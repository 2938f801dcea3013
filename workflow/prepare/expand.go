package prepare

import (
	"context"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// expand makes a task of each object of an Apply task that asks for it.
func (e *Env) expand(_ context.Context, _, _ string, spec *v1alpha1.WorkflowSpec) ([]v1alpha1.TaskSpec, []workflow.Problem, error) {
	return spec.Tasks, nil, nil
}
