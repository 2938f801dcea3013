package page_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

// TestDeepData checks that deeply nested inputs of a few kilobytes do not result in a page of many megabytes.
func TestDeepData(t *testing.T) {
	const depth = 5000
	deep := json.RawMessage(`{"command":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
	f := uitest.Feed(t)
	task := workflow.Task{Name: "deep", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Exec", With: deep}}, Policy: "Pause", PolicySource: "workflow"}
	write(t, f, []workflow.Event{
		workflow.Defined{Of: 1, Tasks: []workflow.Task{task}},
		workflow.Started{Header: workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}, Hash: "hash"},
		workflow.TaskStarted{Task: "deep", Attempt: 1},
		workflow.TaskSucceeded{Task: "deep", Output: deep},
	})
	s := site(t, f)
	for _, address := range []string{largeRun + "&task=deep", "/event?at=1&n=0", "/event?at=1&n=3"} {
		body := show(t, s, address)
		if len(body) > largest {
			t.Errorf("%s has %d bytes, want a smaller page", address, len(body))
		}
		if !strings.Contains(body, "[[[[[[[[") {
			t.Errorf("%s does not contain the data", address)
		}
	}
}
