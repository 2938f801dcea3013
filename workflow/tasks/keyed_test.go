package tasks

import (
	"encoding/json"
	"os"
	"testing"

	"scute.dev/workflow/task"
)

// A Job that undoes a Job is another one, and so is a Move that moves back.
func TestUndoHasObjectsOfItsOwn(t *testing.T) {
	do := &task.Call{Run: "fleet/run/1", Namespace: "fleet", Name: "run", Task: "a", Attempt: 1}
	undo := *do
	undo.Undoing = true
	for what, name := range map[string]func(*task.Call) string{
		"Job": jobName, "label of Jobs": func(c *task.Call) string { return stepJobs(c, "fleet").LabelSelector },
		"Move resource": resourceBase, "local move": (&Move{}).localBase,
	} {
		if name(do) == name(&undo) {
			t.Errorf("%s: the undo has the name of what it takes back: %s", what, name(do))
		}
	}
	if do.StepKey() != undo.StepKey() {
		t.Errorf("an undo by Apply would not find the objects that the step made: %s and %s", do.StepKey(), undo.StepKey())
	}
}

// What an attempt said is not lost when its number is used again.
func TestLogOfAnAttemptIsKept(t *testing.T) {
	exec := &Exec{Enabled: true}
	c := &task.Call{Run: "r", Task: "a/b", Attempt: 1, Dir: t.TempDir()}
	for _, word := range []string{"one", "two"} {
		c.With = json.RawMessage(`{"command": ["echo", "` + word + `"]}`)
		if _, err := exec.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(c.LogPath("")); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("the log holds %q, %v", text, err)
	}
}
