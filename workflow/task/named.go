package task

import "scute.dev/api/v1alpha1"

// Named is a workflow that scute brings along, constructed from parameters. The same ones give the same workflow.
type Named struct {
	Tasks []v1alpha1.TaskSpec
	// OnFailure are its handlers of failures, beside those of the run.
	OnFailure []v1alpha1.HookSpec
	// Kinds are those that only its steps have.
	Kinds Kinds
}
