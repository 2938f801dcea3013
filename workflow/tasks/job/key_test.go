package job

import (
	"testing"

	"scute.dev/workflow/task"
)

// TestUndoHasObjectsOfItsOwn checks that a Job that undoes a Job has another name.
func TestUndoHasObjectsOfItsOwn(t *testing.T) {
	do := &task.Call{Run: "fleet/run/1", Namespace: "fleet", Name: "run", Task: "a", Attempt: 1}
	undo := *do
	undo.Undoing = true
	for what, name := range map[string]func(*task.Call) string{
		"Job": jobName, "label of Jobs": func(c *task.Call) string { return stepJobs(c, "fleet").LabelSelector },
	} {
		if name(do) == name(&undo) {
			t.Errorf("%s: the undo has the same name as the step: %s", what, name(do))
		}
	}
	if do.StepKey() != undo.StepKey() {
		t.Errorf("an undo by Apply would not find the objects of the step: %s and %s", do.StepKey(), undo.StepKey())
	}
}
