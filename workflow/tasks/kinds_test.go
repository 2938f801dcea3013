package tasks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
	"scute.dev/workflow/tasks/diagnose"
	"scute.dev/workflow/tasks/move"
	"scute.dev/workflow/tasks/pause"
	"scute.dev/workflow/tasks/providers"
)

func TestValidateLifecycleKinds(t *testing.T) {
	local, daemon := &access.Clusters{Local: true}, &access.Clusters{}
	for _, c := range []struct {
		name string
		kind task.Kind
		with string
		want []string // "field: part of the message or remedy"; none means valid
	}{
		{"pause nothing", &pause.Kind{}, `{}`, []string{"clusters: nothing is selected"}},
		{"pause all", &pause.Kind{}, `{"all": true}`, nil},
		{"pause all and some", &pause.Kind{}, `{"all": true, "clusters": ["a"]}`, []string{"all: set either"}},
		{"pause an unknown field", &pause.Kind{}, `{"cluster": {}, "clsters": ["a"]}`, []string{"clsters: unknown field"}},
		{"pause with a wrong type", &pause.Kind{}, `{"clusters": "a"}`, []string{"clusters: it has the type string: write a list of strings"}},
		{"pause a nameless release", &pause.Kind{}, `{"helmReleases": [{"name": "a"}, {}]}`, []string{"helmReleases[1].name: it is empty"}},
		{"pause with a negative time", &pause.Kind{}, `{"all": true, "acknowledge": "-1s"}`, []string{"acknowledge: it is negative"}},
		{"pause by a template", &pause.Kind{}, `{"clusters": ["${tasks.make.output.name}"]}`, nil},

		{"resume", &pause.ResumeKind{}, `{"task": "hold"}`, nil},
		{"resume nothing", &pause.ResumeKind{}, `{}`, []string{"task: name the task of kind Pause"}},

		{"approve", tasks.Approve{}, `{"message": "look"}`, nil},
		{"approve without a word", tasks.Approve{}, ``, []string{"message: it is empty"}},

		{"move", &move.Kind{}, `{"clusters": ["a"], "to": {"kubeconfig": "x"}}`, nil},
		{"move nothing nowhere", &move.Kind{}, `{}`, []string{"clusters: exactly one of clusters and all", "to: name the management cluster"}},
		{"move with a negative time", &move.Kind{}, `{"all": true, "to": {"context": "x"}, "timeouts": {"create": "-1s"}}`, []string{"timeouts.create: it is negative"}},
		{"move by a file in the daemon", &move.Kind{Resource: true}, `{"all": true, "to": {"kubeconfig": "x"}}`, []string{"to: name it in to.kubeconfigSecretRef"}},
		{"move from elsewhere in the daemon", &move.Kind{Resource: true}, `{"all": true, "from": {"kubeconfigSecretRef": {"name": "f"}}, "to": {"kubeconfigSecretRef": {"name": "t"}}}`, []string{"from: the cluster that it runs in"}},

		{"providers", &providers.Kind{Clusters: daemon}, `{"core": "cluster-api:v1.14.2", "bootstrap": ["kubeadm:v1.14.2"]}`, nil},
		{"no providers", &providers.Kind{Clusters: local}, `{}`, []string{"core: no provider"}},
		{"a provider without a version", &providers.Kind{Clusters: local}, `{"infrastructure": ["aws:v2.9.0", "docker"]}`, []string{"infrastructure[1]: add the version"}},
		{"a provider by a template", &providers.Kind{Clusters: local}, `{"core": "cluster-api:${tasks.v.output.version}"}`, nil},
		{"a local repository", &providers.Kind{Clusters: local}, `{"core": "cluster-api:v1.14.2", "config": {"providers": [{"name": "cluster-api", "url": "file:///repository/core.yaml", "type": "CoreProvider"}]}}`, nil},
		{
			"the daemon's own machine",
			&providers.Kind{Clusters: daemon},
			`{"core": "cluster-api:v1.14.2", "configFile": "/etc/x", "config": {"overridesFolder": "/etc", "cert-manager": {"url": "/etc/cm.yaml"}, "providers": [{"name": "a", "url": "file:///etc/core.yaml"}, {"name": "b", "url": "https://x/${HOME}"}]}}`,
			[]string{"configFile: local run", "config.overridesFolder: local run", "config.providers[0].url: only read repositories over https", "config.providers[1].url: only read repositories over https", "config.cert-manager.url: only read repositories over https"},
		},

		{"diagnose", &diagnose.Kind{Clusters: daemon}, `{}`, nil},
		{"diagnose half an object", &diagnose.Kind{Clusters: daemon}, `{"objects": [{"kind": "Pod", "name": "p"}]}`, []string{"objects[0].apiVersion: it is empty"}},
		{"diagnose to a folder of the daemon", &diagnose.Kind{Clusters: daemon}, `{"to": "/var"}`, []string{"to: local run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems := c.kind.Validate(json.RawMessage(c.with))
			if len(problems) != len(c.want) {
				t.Fatalf("problems = %v, want %q", problems, c.want)
			}
			for i, want := range c.want {
				field, says, _ := strings.Cut(want, ": ")
				if p := problems[i]; p.Field != field || !strings.Contains(p.Message+": "+p.Remedy, says) || p.Remedy == "" {
					t.Errorf("problem = %+v, want %q", p, want)
				}
			}
		})
	}
}

// TestUndoOfNothing checks that the undo of a task that recorded nothing succeeds without a cluster.
func TestUndoOfNothing(t *testing.T) {
	for _, kind := range []task.Kind{&pause.Kind{}, &pause.ResumeKind{}, &move.Kind{}, &move.Kind{Resource: true}, &providers.Kind{}, &diagnose.Kind{}} {
		if err := kind.Undo(t.Context(), &task.Call{}); err != nil {
			t.Errorf("Undo of %T = %v", kind, err)
		}
	}
	if holder, ok := task.Kind(&pause.Kind{}).(task.Holder); !ok || !holder.Holds() {
		t.Error("kind Pause does not hold")
	}
}
