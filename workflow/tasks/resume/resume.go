package resume

import (
	"context"
	"encoding/json"
	"fmt"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/task/inputs"
	"scute.dev/workflow/tasks/pause"
)

// Kind lifts the pause of a task Pause before the run ends: it restores exactly what that task recorded, and nothing
// else. What was paused before the run stays paused. Its undo pauses again.
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of Resume.
type With struct {
	// Task is the name of the Pause whose pause is lifted. It must be among the tasks that this one needs, directly or
	// not.
	Task string `json:"task"`
}

// resumed is the record and the output of a Resume.
type resumed struct {
	Task string `json:"task"`
	// Restored counts the objects that got back the state in which they were found.
	Restored int          `json:"restored"`
	Pause    pause.Record `json:"pause"`
}

// Validate checks that a task is named.
func (*Kind) Validate(with json.RawMessage) []workflow.Problem {
	var w With
	if problems := inputs.Strict(with, &w); len(problems) > 0 {
		return problems
	}
	if w.Task == "" {
		return []workflow.Problem{{Field: "task", Message: "it is empty", Remedy: "name the task of kind Pause whose pause must be lifted"}}
	}
	return nil
}

// Releases is the Pause whose pause is lifted.
func (*Kind) Releases(with json.RawMessage) string {
	var w With
	if err := json.Unmarshal(with, &w); err != nil {
		return ""
	}
	return w.Task
}

// ReadsInputs says that the output of the Pause is one of them.
func (*Kind) ReadsInputs() {}

// Run restores what the Pause recorded.
func (r *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := inputs.Read[With](c, r.Validate)
	if err != nil {
		return nil, err
	}
	output, ok := c.Inputs[w.Task]
	if !ok {
		return nil, task.Final(fmt.Errorf("with.task: this task does not need %q, or it has no output: add it to needs", w.Task))
	}
	var was pause.Record
	if err := json.Unmarshal(output, &was); err != nil || was.Holder == "" {
		return nil, task.Final(fmt.Errorf("with.task: the output of %q is not that of a Pause: name a task of kind Pause", w.Task))
	}
	record := resumed{Task: w.Task, Restored: len(was.Roots) + len(was.Switches), Pause: was}
	if err := c.Prepare(ctx, record, false); err != nil {
		return nil, err
	}
	if err := pause.Restore(ctx, r.Clusters, c, was); err != nil {
		return nil, err
	}
	return json.Marshal(record)
}

// Undo pauses again, in the name of the Pause, which gives it back in its turn. What somebody else has paused or
// resumed since is left to them.
func (r *Kind) Undo(ctx context.Context, c *task.Call) error {
	if len(c.Undo) == 0 {
		return nil
	}
	record, err := task.Recorded[resumed](c)
	if err != nil {
		return err
	}
	return pause.SetAgain(ctx, r.Clusters, c, record.Pause)
}
