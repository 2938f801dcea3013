package task

import (
	"context"
	"encoding/json"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// Named is a named workflow, constructed from parameters. The same parameters result in the same workflow.
type Named struct {
	Tasks []v1alpha1.TaskSpec
	// OnFailure are its handlers of failures, beside those of the run.
	OnFailure []v1alpha1.HookSpec
	// Diagnose are the inputs of a Diagnose of what its tasks work on; nil: there is none.
	Diagnose json.RawMessage
	// Kinds are those that only its steps have.
	Kinds Kinds
	// Read reads the files and objects that its tasks are going to read, before a run begins, and returns all that is wrong with them. The error is
	// one of a cluster that may have them later. Nil reads nothing.
	Read func(ctx context.Context, c *Call) ([]workflow.Problem, error)
}
