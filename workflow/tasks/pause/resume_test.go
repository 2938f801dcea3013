package pause_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/pause"
)

// TestResumeNeedsItsPause checks that a Resume needs the output of a Pause.
func TestResumeNeedsItsPause(t *testing.T) {
	for name, inputs := range map[string]map[string]json.RawMessage{
		"add it to needs":              {},
		"name a task of kind":          {"hold": json.RawMessage(`{"pods": 3}`)},
		"is not a task of kind Pause:": {"hold": json.RawMessage(`"text"`)},
	} {
		call := &task.Call{
			With: json.RawMessage(`{"task": "hold"}`), Inputs: inputs,
			Record: func(context.Context, json.RawMessage, bool) error { t.Error("Record was called"); return nil },
		}
		_, err := (&pause.ResumeKind{}).Run(t.Context(), call)
		if !task.IsFinal(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("Run = %v, want %q", err, name)
		}
	}
}
