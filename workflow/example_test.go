package workflow_test

import (
	"fmt"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// Example shows the pure engine: it decides which events follow and which effects are due. The program that drives it
// stores the events, performs the effects, and reports their outcomes. Here every effect succeeds at once.
func Example() {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	spec := v1alpha1.WorkflowRunSpec{Tasks: []v1alpha1.TaskSpec{
		{StepSpec: v1alpha1.StepSpec{Name: "back-up", Kind: "Exec"}},
		{StepSpec: v1alpha1.StepSpec{Name: "upgrade", Kind: "Exec"}, Needs: []v1alpha1.Need{{Task: "back-up"}}},
	}}
	definition, problems := workflow.Build(&spec, workflow.Options{Name: "example", Kind: func(string) (workflow.KindInfo, bool) {
		return workflow.KindInfo{}, true
	}})
	if len(problems) > 0 {
		panic(problems)
	}

	var state workflow.State
	apply := func(events []workflow.Event, err error) {
		if err != nil {
			panic(err)
		}
		for _, e := range events { // a driver appends them to the log before it applies them
			state.Apply(e, now)
		}
	}
	apply(workflow.Start(definition, "", now), nil)
	apply([]workflow.Event{workflow.Claimed{Holder: "example"}}, nil)
	for !state.Finished() {
		apply(workflow.Decide(&state, workflow.Tick{Parallel: 16}, now))
		for _, e := range workflow.Effects(&state) {
			fmt.Println("perform", e.Task)
			apply(workflow.Decide(&state, workflow.ActDone{Task: e.Task, Step: e.Step, Attempt: e.Attempt}, now))
		}
	}
	fmt.Println(workflow.CurrentPhase(&state))
	// Output:
	// perform back-up
	// perform upgrade
	// Succeeded
}
