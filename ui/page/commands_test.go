package page_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scute.dev/ui/feed"
	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

// waitingRunFeed returns a feed with a run that waits for a decision.
func waitingRunFeed(t *testing.T) *feed.Feed {
	t.Helper()
	h := workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}
	check := workflow.Task{Name: "check", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Exec", With: json.RawMessage(`{"command":["false"]}`)}}, Policy: "Pause", PolicySource: "workflow"}
	f := uitest.Feed(t)
	write(t, f, []workflow.Event{
		workflow.Defined{Of: 1, Tasks: []workflow.Task{check}},
		workflow.Started{Header: h, Hash: "hash"},
		workflow.Claimed{Holder: "one"},
		workflow.TaskStarted{Task: "check", Attempt: 1},
		workflow.TaskPaused{Task: "check", Reason: workflow.ReasonFailed, Message: "it failed"},
	})
	return f
}

// TestALocalRunIsContinued checks that the pages show the command that continues a local run after a decision.
func TestALocalRunIsContinued(t *testing.T) {
	s := site(t, waitingRunFeed(t))
	for _, address := range []string{"/", largeRun} {
		body := show(t, s, address)
		for _, want := range []string{"scutectl decide run large ", "scutectl resume run large --local --log logs -n fleet</code> then continues the run"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not contain %q:\n%s", address, want, body)
			}
		}
	}
}
