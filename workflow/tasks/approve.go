package tasks

import (
	"context"
	"encoding/json"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// Approve waits for an operator's decision: `scutectl decide run NAME --task T --action succeed
// --reason "..."` continues the run.
//
// It waits as long as `timeout` and `totalTimeout` allow, by default forever. The run's deadline is
// not extended meanwhile. Without a decision in time it fails, and `retry` or its failurePolicy
// applies.
type Approve struct{}

// ApproveWith are the inputs of Approve.
type ApproveWith struct {
	// Message describes the decision, and what the operator should check before.
	Message string `json:"message"`
}

// Interactive returns true, because an Approve waits for an operator.
func (Approve) Interactive() bool { return true }

// Validate checks that the message is not empty.
func (Approve) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[ApproveWith](with)
	if len(problems) == 0 && w.Message == "" {
		problems.Add("message", "it is empty", "set it to the question for the operator")
	}
	return problems
}

// Run returns a DecisionError, so that the task waits for an operator.
func (a Approve) Run(_ context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := task.ReadInputs[ApproveWith](c, a.Validate)
	if err != nil {
		return nil, err
	}
	return nil, &task.DecisionError{Reason: w.Message}
}

// Undo does nothing.
func (Approve) Undo(context.Context, *task.Call) error { return nil }
