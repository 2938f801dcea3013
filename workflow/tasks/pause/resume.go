package pause

import (
	"context"
	"encoding/json"
	"fmt"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// ResumeKind ends the pause of a Pause task before the run ends. It restores exactly the recorded
// state, so an object that was paused before the run stays paused. Its undo pauses again.
type ResumeKind struct {
	Clusters *access.Clusters
}

// ResumeWith are the inputs of Resume.
type ResumeWith struct {
	// Task is the name of the Pause to lift. This task must need it, directly or indirectly.
	Task string `json:"task"`
}

// resumed is both the record and the output of a Resume.
type resumed struct {
	Task     string `json:"task"`
	Restored int    `json:"restored"`
	Pause    Record `json:"pause"`
}

// Validate checks that a task is named.
func (*ResumeKind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[ResumeWith](with)
	if len(problems) == 0 && w.Task == "" {
		problems.Add("task", "it is empty", "name the task of kind Pause whose pause must end")
	}
	return problems
}

// Releases returns the name of the Pause task.
func (*ResumeKind) Releases(with json.RawMessage) string {
	var w ResumeWith
	if err := json.Unmarshal(with, &w); err != nil {
		return ""
	}
	return w.Task
}

// ReadsInputs declares that Run reads the output of the Pause.
func (*ResumeKind) ReadsInputs() {}

// Run restores the state that the Pause recorded.
func (r *ResumeKind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := task.ReadInputs[ResumeWith](c, r.Validate)
	if err != nil {
		return nil, err
	}
	output, ok := c.Inputs[w.Task]
	if !ok {
		return nil, task.Final(fmt.Errorf("with.task: this task does not need %q, or it has no output: add it to needs", w.Task))
	}
	var was Record
	if err := json.Unmarshal(output, &was); err != nil || was.Holder == "" {
		return nil, task.Final(fmt.Errorf("with.task: %q is not a task of kind Pause: name a task of kind Pause", w.Task))
	}
	record := resumed{Task: w.Task, Restored: len(was.Roots) + len(was.Switches), Pause: was}
	if err := c.Prepare(ctx, record, false); err != nil {
		return nil, err
	}
	if err := restoreRecord(ctx, r.Clusters, c, was); err != nil {
		return nil, err
	}
	return json.Marshal(record)
}

// Undo pauses again on behalf of the Pause, whose own undo ends the pause later. It does not change
// objects that another client has paused or resumed since.
func (r *ResumeKind) Undo(ctx context.Context, c *task.Call) error {
	record, err := task.Recorded[resumed](c)
	if err != nil || len(c.Undo) == 0 {
		return err
	}
	h, err := openRecorded(ctx, r.Clusters, c, record.Pause)
	if err != nil {
		return classifyError(err)
	}
	return classifyError(h.setAgain(ctx))
}
