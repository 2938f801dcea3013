package manifest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// TestNamed checks that a named workflow's handlers of failures come after those of the run, and that the manifest is
// not changed.
func TestNamed(t *testing.T) {
	own := spec(t, `{tasks: [{name: create, kind: Own, with: {command: [begin]}}], hooks: {onFailure: [{name: tinkerbell-1, kind: Exec, with: {command: [look]}}]}}`)
	e := env()
	e.NamedWorkflow = func(context.Context, string, string, json.RawMessage) (task.NamedWorkflow, []workflow.Problem) {
		return task.NamedWorkflow{Tasks: own.Tasks, OnFailure: own.Hooks.OnFailure, Kinds: task.Kinds{"Own": e.Kinds["Exec"]}}, nil
	}
	s := spec(t, `{workflow: {name: workload-create}, hooks: {onFailure: [{name: page, kind: Exec, with: {command: [look]}}]}}`)
	d, problems, err := e.Definition(t.Context(), "fleet", "test", s)
	if err != nil || d == nil {
		t.Fatal(problems, err)
	}
	if kinds, err := e.KindsFor(t.Context(), d.Header); err != nil || kinds["Own"] == nil || kinds["Exec"] == nil || len(e.Kinds) == len(kinds) {
		t.Error(kinds, err)
	}
	var names []string
	for _, h := range d.OnFailure {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"onFailure/page", "onFailure/tinkerbell-1"}, names); diff != "" {
		t.Error(diff)
	}
	if len(s.Hooks.OnFailure) != 1 || len(s.Tasks) != 0 {
		t.Error("the manifest was changed")
	}

	s.Hooks.OnFailure[0].Name = "tinkerbell-1"
	_, problems, err = e.Definition(t.Context(), "fleet", "test", s)
	if err != nil || len(problems) != 1 || problems[0].Field != "spec.hooks.onFailure[0].name" || problems[0].Warning {
		t.Errorf("with a second handler of the same name: problems %v, error %v", problems, err)
	}
}
