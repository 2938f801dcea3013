package tasks_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
	"scute.dev/workflow/tasks/approve"
)

func TestValidateLifecycleKinds(t *testing.T) {
	local, daemon := &access.Clusters{Local: true}, &access.Clusters{}
	for _, c := range []struct {
		name string
		kind task.Kind
		with string
		want []string // "field: part of the message or remedy"; none is valid
	}{
		{"pause nothing", &tasks.Pause{}, `{}`, []string{"clusters: nothing is selected"}},
		{"pause all", &tasks.Pause{}, `{"all": true}`, nil},
		{"pause all and some", &tasks.Pause{}, `{"all": true, "clusters": ["a"]}`, []string{"all: set either"}},
		{"pause an unknown field", &tasks.Pause{}, `{"cluster": {}, "clsters": ["a"]}`, []string{"clsters: unknown field"}},
		{"pause with a wrong type", &tasks.Pause{}, `{"clusters": "a"}`, []string{"clusters: it is a string"}},
		{"pause a nameless release", &tasks.Pause{}, `{"helmReleases": [{"name": "a"}, {}]}`, []string{"helmReleases[1].name: it is empty"}},
		{"pause with a negative time", &tasks.Pause{}, `{"all": true, "acknowledge": "-1s"}`, []string{"acknowledge: it is negative"}},
		{"pause by a template", &tasks.Pause{}, `{"clusters": ["${tasks.make.output.name}"]}`, nil},

		{"resume", &tasks.Resume{}, `{"task": "hold"}`, nil},
		{"resume nothing", &tasks.Resume{}, `{}`, []string{"task: name the task of kind Pause"}},

		{"approve", approve.Kind{}, `{"message": "look"}`, nil},
		{"approve without a word", approve.Kind{}, ``, []string{"message: it is empty"}},

		{"move", &tasks.Move{}, `{"clusters": ["a"], "to": {"kubeconfig": "x"}}`, nil},
		{"move nothing nowhere", &tasks.Move{}, `{}`, []string{"clusters: either some", "to: name the management cluster"}},
		{"move with a negative time", &tasks.Move{}, `{"all": true, "to": {"context": "x"}, "timeouts": {"create": "-1s"}}`, []string{"timeouts.create: it is negative"}},
		{"move by a file in the daemon", &tasks.Move{Resource: true}, `{"all": true, "to": {"kubeconfig": "x"}}`, []string{"to: name it in to.kubeconfigSecretRef"}},
		{"move from elsewhere in the daemon", &tasks.Move{Resource: true}, `{"all": true, "from": {"kubeconfigSecretRef": {"name": "f"}}, "to": {"kubeconfigSecretRef": {"name": "t"}}}`, []string{"from: the cluster that it runs in"}},

		{"providers", &tasks.Providers{Clusters: daemon}, `{"core": "cluster-api:v1.14.2", "bootstrap": ["kubeadm:v1.14.2"]}`, nil},
		{"no providers", &tasks.Providers{Clusters: local}, `{}`, []string{"core: no provider"}},
		{"a provider without a version", &tasks.Providers{Clusters: local}, `{"infrastructure": ["aws:v2.9.0", "docker"]}`, []string{"infrastructure[1]: name the version"}},
		{"a provider by a template", &tasks.Providers{Clusters: local}, `{"core": "cluster-api:${tasks.v.output.version}"}`, nil},
		{"a local repository", &tasks.Providers{Clusters: local}, `{"core": "cluster-api:v1.14.2", "config": {"providers": [{"name": "cluster-api", "url": "file:///repository/core.yaml", "type": "CoreProvider"}]}}`, nil},
		{
			"the daemon's own machine",
			&tasks.Providers{Clusters: daemon},
			`{"core": "cluster-api:v1.14.2", "configFile": "/etc/x", "config": {"overridesFolder": "/etc", "cert-manager": {"url": "/etc/cm.yaml"}, "providers": [{"name": "a", "url": "file:///etc/core.yaml"}, {"name": "b", "url": "https://x/${HOME}"}]}}`,
			[]string{"configFile: local run", "config.overridesFolder: local run", "config.providers[0].url: https alone", "config.providers[1].url: https alone", "config.cert-manager.url: https alone"},
		},

		{"diagnose", &tasks.Diagnose{Clusters: daemon}, `{}`, nil},
		{"diagnose half an object", &tasks.Diagnose{Clusters: daemon}, `{"objects": [{"kind": "Pod", "name": "p"}]}`, []string{"objects[0]: apiVersion"}},
		{"diagnose to a folder of the daemon", &tasks.Diagnose{Clusters: daemon}, `{"to": "/var"}`, []string{"to: local run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := c.kind.Validate(json.RawMessage(c.with))
			if len(problems) != len(c.want) {
				t.Fatalf("%v, want %q", problems, c.want)
			}
			for i, want := range c.want {
				field, says, _ := strings.Cut(want, ": ")
				if p := problems[i]; p.Field != field || !strings.Contains(p.Message+": "+p.Remedy, says) || p.Remedy == "" {
					t.Errorf("%+v, want %q", p, want)
				}
			}
		})
	}
}

// A Resume can only undo what it can see: a Pause among its needs.
func TestResumeNeedsItsPause(t *testing.T) {
	for name, inputs := range map[string]map[string]json.RawMessage{
		"add it to needs":         {},
		"name a task of kind":     {"hold": json.RawMessage(`{"pods": 3}`)},
		"is not that of a Pause:": {"hold": json.RawMessage(`"text"`)},
	} {
		call := &task.Call{
			With: json.RawMessage(`{"task": "hold"}`), Inputs: inputs,
			Record: func(context.Context, json.RawMessage, bool) error { t.Error("something was recorded"); return nil },
		}
		_, err := (&tasks.Resume{}).Run(t.Context(), call)
		if !task.IsFinal(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want it to say %q", err, name)
		}
	}
}

// What never recorded anything has nothing to undo, and asks no cluster.
func TestUndoOfNothing(t *testing.T) {
	for _, kind := range []task.Kind{&tasks.Pause{}, &tasks.Resume{}, &tasks.Move{}, &tasks.Move{Resource: true}, &tasks.Providers{}, &tasks.Diagnose{}} {
		if err := kind.Undo(t.Context(), &task.Call{}); err != nil {
			t.Errorf("%T: %v", kind, err)
		}
	}
	if holder, ok := task.Kind(&tasks.Pause{}).(task.Holder); !ok || !holder.Holds() {
		t.Error("a Pause is not given back at the end of a run")
	}
}
