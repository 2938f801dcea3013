package push_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/push"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/sequence"
)

const manifest = `
failurePolicy: Rollback
deadline: 2h
serviceAccountName: fleet
policies: [{kind: Probe, failurePolicy: Pause, retry: {max: 2}}]
hooks:
  pre: [{name: look, kind: Other}]
  post: [{name: write, kind: Other, undo: None}]
  onFailure: [{name: tell, kind: Other, timeout: 1m}]
tasks:
- {name: a, kind: Probe, with: {x: 1}, undo: {kind: Other, with: {y: 2}}, timeout: 5m, totalTimeout: 30m}
- {name: b, kind: Other, needs: [a, {task: c, on: Failure, optional: true, timeout: 10m}, {task: d, on: Completion, optional: true}], join: Any, before: [{name: p, kind: Other}], after: [{name: q, kind: Probe}]}
- {name: c, kind: Other, failurePolicy: Ignore, always: true, retry: {max: 3, delay: 1s, factor: 3, maxDelay: 30s, recreate: true}}
- {name: d, kind: Other, atMostOnce: true, pointOfNoReturn: false}
`

// What is made of a definition defines it again.
func TestSpecSaysWhatTheDefinitionDoes(t *testing.T) {
	var spec v1alpha1.WorkflowRunSpec
	if err := yaml.UnmarshalStrict([]byte(manifest), &spec); err != nil {
		t.Fatal(err)
	}
	build := func(spec *v1alpha1.WorkflowRunSpec) *workflow.Definition {
		d, problems := workflow.Build(spec, workflow.Options{Namespace: "fleet", Name: "x", Kind: func(string) (workflow.KindInfo, bool) { return workflow.KindInfo{}, true }})
		if d == nil {
			t.Fatal(problems)
		}
		for i := range d.Tasks { // that a policy was the kind's is told as the task's
			if d.Tasks[i].PolicyFrom == "kind" {
				d.Tasks[i].PolicyFrom = "task"
			}
		}
		return d
	}
	want := build(&spec)
	again := push.Spec(want)
	if diff := cmp.Diff(show(t, want), show(t, build(&again))); diff != "" {
		t.Error(diff)
	}
}

// TestSpecOfANamedWorkflow: the hooks and the handlers of failures that the program has bound come again with the workflow. Those of the
// manifest stay.
func TestSpecOfANamedWorkflow(t *testing.T) {
	handler := func(name, kind string) workflow.Step { return workflow.Step{Name: "onFailure/" + name, Kind: kind} }
	d := &workflow.Definition{Header: workflow.Header{
		OnFailure: []workflow.Step{handler("tell", "Other"), handler("tinkerbell-1", sequence.HookKind)}, Workflow: &workflow.Named{Name: "workload-create"},
	}, Tasks: []workflow.Task{{Name: "post-create", Stage: workflow.StageMain, Steps: []workflow.Step{
		{Name: "before/look", Kind: "Other"}, {Kind: "PostCreate"}, {Name: "after/write-config-1", Kind: sequence.HookKind}, {Name: "after/push", Kind: "Other"},
	}}}}
	if got := push.Spec(d).Hooks.OnFailure; len(got) != 1 || got[0].Name != "tell" {
		t.Errorf("%+v", got)
	}
	hooks := push.Spec(d).Workflow.Hooks
	if before, after := hooks.Before["post-create"], hooks.After["post-create"]; len(before) != 1 || before[0].Name != "look" || len(after) != 1 || after[0].Name != "push" {
		t.Errorf("%+v", hooks)
	}
}

func show(t *testing.T, d *workflow.Definition) any {
	t.Helper()
	data, err := json.Marshal(d)
	var v any
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
