package page_test

import (
	"fmt"
	"strings"
	"testing"

	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

// TestManyAttempts checks that a page shows only the last attempts of tasks that were tried hundreds of times.
func TestManyAttempts(t *testing.T) {
	const tasks, tries = 40, 300
	f := uitest.Feed(t)
	defined := workflow.Defined{Of: 1}
	for i := range tasks {
		step := workflow.Step{Kind: "Exec", Retry: workflow.Retry{Max: tries}}
		defined.Tasks = append(defined.Tasks, workflow.Task{Name: fmt.Sprintf("task-%d", i), Stage: workflow.StageMain, Steps: []workflow.Step{step}, Policy: "Pause", PolicySource: "workflow"})
	}
	facts := []workflow.Event{defined, workflow.Started{Header: workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}, Hash: "hash"}}
	for n := 1; n <= tries; n++ {
		for _, task := range defined.Tasks {
			facts = append(facts, workflow.TaskStarted{Task: task.Name, Attempt: n}, workflow.AttemptFailed{Task: task.Name, Attempt: n, Message: "not yet"})
		}
	}
	write(t, f, facts)
	s := site(t, f)
	body := show(t, s, largeRun+"&task=task-1")
	if len(body) > 2*largest {
		t.Errorf("the page has %d bytes, want a smaller page", len(body))
	}
	for _, want := range []string{"The last 20 attempts of each task", "attempt 300: ", "200 earlier attempts", "attempt 281: "} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}
