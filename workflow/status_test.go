package workflow_test

import (
	"encoding/json"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// TestStatusLeavesOutWhatNoServerReads checks that a status omits outputs with numbers that no float64 can represent.
// An output may be the response of any server; the API server would reject the status, and the WorkflowRun would never
// be updated again.
func TestStatusLeavesOutWhatNoServerReads(t *testing.T) {
	var spec v1alpha1.WorkflowRunSpec
	if err := yaml.UnmarshalStrict([]byte("tasks: [{name: a, kind: Do}]"), &spec); err != nil {
		t.Fatal(err)
	}
	d, problems := workflow.Build(&spec, workflow.Options{Name: "story", Kind: kind})
	if d == nil {
		t.Fatal(problems)
	}
	for output, shown := range map[string]bool{`{"n":12345678901234567890}`: true, `{"n":1e400}`: false} {
		var s workflow.State
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		for _, e := range append(workflow.Start(d, "", now), workflow.Claimed{Holder: "one"}, workflow.TaskStarted{Task: "a", Attempt: 1},
			workflow.TaskSucceeded{Task: "a", Output: json.RawMessage(output)}) {
			s.Apply(e, now)
		}
		if got := workflow.Status(&s).Tasks[0].Output != nil; got != shown {
			t.Errorf("output %s is shown: %t, want %t", output, got, shown)
		}
		if string(s.Output("a")) != output {
			t.Errorf("Output = %s, want it unchanged", s.Output("a"))
		}
	}
}
