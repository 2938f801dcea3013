package page_test

import (
	"fmt"
	"strings"
	"testing"

	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

// TestLongTexts checks that long messages of tasks and events are shortened in lists.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("it failed again ", 1_000)
	f := uitest.Feed(t)
	defined := workflow.Defined{Of: 1}
	var facts []workflow.Event
	for i := range 40 {
		name := fmt.Sprintf("task-%d", i)
		defined.Tasks = append(defined.Tasks, workflow.Task{Name: name, Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Exec"}}, Policy: "Pause", PolicySource: "workflow"})
		facts = append(facts, workflow.TaskStarted{Task: name, Attempt: 1}, workflow.TaskPaused{Task: name, Reason: workflow.ReasonFailed, Message: long})
	}
	write(t, f, append([]workflow.Event{defined, workflow.Started{Header: workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}, Hash: "hash"}}, facts...))
	s := site(t, f)
	for _, address := range []string{"/", "/facts", "/facts?text=again", largeRun, largeRun + "&task=task-1"} {
		if body := show(t, s, address); len(body) > 2*largest {
			t.Errorf("%s has %d bytes, want a smaller page", address, len(body))
		}
	}
}
