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
	// Read reads, before a run begins, the files and objects that its tasks will read, and returns all problems. The error is from a cluster in which
	// they may exist later. Nil reads nothing.
	Read func(ctx context.Context, c *Call) ([]workflow.Problem, error)
}
