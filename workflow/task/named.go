package task

import (
	"context"
	"encoding/json"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// NamedWorkflow is a named workflow, constructed from parameters. The same parameters result in the same workflow.
type NamedWorkflow struct {
	Tasks []v1alpha1.TaskSpec
	// OnFailure are its failure handlers, in addition to the failure handlers of the run.
	OnFailure []v1alpha1.HookSpec
	// Diagnose are the inputs of a Diagnose handler for the objects that its tasks work on; nil: none.
	Diagnose json.RawMessage
	// Kinds are the kinds that only its steps can use.
	Kinds Kinds
	// Read tries to read the files and objects that the tasks of a run will read, before the run
	// begins, and returns all problems. It returns an error if a cluster cannot be read, because
	// the objects may exist there later. If Read is nil, nothing is checked.
	Read func(ctx context.Context, c *Call) ([]workflow.Problem, error)
}
