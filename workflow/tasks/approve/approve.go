package approve

import (
	"context"
	"encoding/json"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/inputs"
)

// Kind waits for an operator: `scutectl decide run NAME --task T --action succeed --reason "..."` lets the run continue,
// `--action abort` or `--action rollback` ends it. Who decided, when and why are in the log, as of every decision.
//
// It asks for as long as `timeout` and `totalTimeout` say, forever by default, and the deadline of the run continues
// meanwhile. When nobody has decided in time it fails, and `retry` or its failurePolicy applies.
type Kind struct{}

// With are the inputs of Approve.
type With struct {
	// Message says what must be decided, and what the operator should check before.
	Message string `json:"message"`
}

// Asks says that it waits for an operator.
func (Kind) Asks() bool { return true }

// Validate checks that there is a message.
func (Kind) Validate(with json.RawMessage) []workflow.Problem {
	var w With
	if problems := inputs.Strict(with, &w); len(problems) > 0 {
		return problems
	}
	if w.Message == "" {
		return []workflow.Problem{{Field: "message", Message: "it is empty", Remedy: "say what must be decided"}}
	}
	return nil
}

// Run leaves the task to an operator.
func (a Kind) Run(_ context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := inputs.Read[With](c, a.Validate)
	if err != nil {
		return nil, err
	}
	return nil, &task.DecisionError{Why: w.Message}
}

// Undo has nothing to take back.
func (Kind) Undo(context.Context, *task.Call) error { return nil }
