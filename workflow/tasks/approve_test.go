package tasks_test

import (
	"encoding/json"
	"errors"
	"testing"

	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks"
)

func TestApproveAsks(t *testing.T) {
	_, err := tasks.Approve{}.Run(t.Context(), &task.Call{With: json.RawMessage(`{"message": "Is the network ready?"}`)})
	var decision *task.DecisionError
	if !errors.As(err, &decision) || decision.Reason != "Is the network ready?" {
		t.Errorf("Run = %v, want a DecisionError with the message", err)
	}
	if err := (tasks.Approve{}).Undo(t.Context(), &task.Call{}); err != nil {
		t.Error(err)
	}
}
