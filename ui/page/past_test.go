package page_test

import (
	"strings"
	"testing"

	"scute.dev/api/v1alpha1"
	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

// TestAMomentByItsTime checks that durations are shown up to the requested time, as in `scutectl describe --at`, and
// not only up to the last commit before it.
func TestAMomentByItsTime(t *testing.T) {
	f := uitest.Feed(t)
	task := workflow.Task{Name: "upgrade", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Exec"}}, Policy: "Pause", PolicySource: "workflow"}
	write(t, f, []workflow.Event{
		workflow.Defined{Of: 1, Tasks: []workflow.Task{task}},
		workflow.Started{Header: workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}, Hash: "hash"},
		workflow.TaskStarted{Task: "upgrade", Attempt: 1}, // at 12:00:03, in the commit that is stored at 12:00:01
	})
	s := site(t, f)
	for at, want := range map[string]string{"2026-05-01T12:00:08Z": ">5s<", "2026-05-01T12:45:03Z": ">45m<", "2100-01-01": ">213d<"} {
		if body := show(t, s, largeRun+"&at="+at); !strings.Contains(body, want) {
			t.Errorf("at %s the page does not contain %q:\n%s", at, want, body)
		}
	}
}

// TestWhatEndedHasTheTimeOfItsEnd checks that ended runs are shown with the time of their end.
func TestWhatEndedHasTheTimeOfItsEnd(t *testing.T) {
	f := uitest.Feed(t)
	task := workflow.Task{Name: "upgrade", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Exec"}}, Policy: "Pause", PolicySource: "workflow"}
	write(t, f, []workflow.Event{
		workflow.Defined{Of: 1, Tasks: []workflow.Task{task}},
		workflow.Started{Header: workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}, Hash: "hash"}, // at 12:00:02
		workflow.TaskStarted{Task: "upgrade", Attempt: 1},
		workflow.TaskSucceeded{Task: "upgrade"},
		workflow.Ended{Phase: v1alpha1.RunSucceeded}, // at 12:00:05
	})
	s := site(t, f)
	_, ended, found := strings.Cut(show(t, s, "/"), ">Ended</h2>")
	if ended, _, _ = strings.Cut(ended, "</section>"); !found || !strings.Contains(ended, ">2026-05-01 12:00:05<") {
		t.Errorf("the page does not contain the end at 12:00:05:\n%s", ended)
	}
}
