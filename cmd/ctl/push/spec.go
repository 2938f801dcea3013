package push

import (
	"encoding/json"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/sequence"
)

// Spec is a manifest that says what a definition does. It is what the WorkflowRun of a pushed run shows: the run itself continues
// with its definition.
func Spec(d *workflow.Definition) v1alpha1.WorkflowRunSpec {
	spec := v1alpha1.WorkflowRunSpec{
		FailurePolicy: d.Policy, Deadline: duration(d.Deadline), ServiceAccountName: d.ServiceAccount,
	}
	for i := range d.OnFailure {
		if d.OnFailure[i].Kind != sequence.HookKind && !d.OnFailure[i].Default { // else the named workflow, or scutectl, brings it along
			spec.Hooks.OnFailure = append(spec.Hooks.OnFailure, hook(&d.OnFailure[i]))
		}
	}
	if d.Workflow != nil {
		spec.Workflow = &v1alpha1.NamedWorkflow{Name: d.Workflow.Name, Params: raw(d.Workflow.Params)}
	}
	for i := range d.Tasks {
		t := &d.Tasks[i]
		own := step(&t.Steps[t.Own()])
		own.Name = t.Name
		switch {
		case t.Stage == workflow.StagePre:
			own.Name = strings.TrimPrefix(t.Name, "pre/")
			spec.Hooks.Pre = append(spec.Hooks.Pre, v1alpha1.HookSpec{StepSpec: own})
		case t.Stage == workflow.StagePost:
			own.Name = strings.TrimPrefix(t.Name, "post/")
			spec.Hooks.Post = append(spec.Hooks.Post, v1alpha1.HookSpec{StepSpec: own})
		case d.Workflow == nil:
			spec.Tasks = append(spec.Tasks, task(t, own))
		default:
			named(&spec.Workflow.Hooks, task(t, own))
		}
	}
	return spec
}

// named adds the hooks of a task of a named workflow that were in the manifest.
func named(hooks *v1alpha1.TaskHooks, t v1alpha1.TaskSpec) {
	add := func(to *map[string][]v1alpha1.HookSpec, list []v1alpha1.HookSpec) {
		for _, h := range list {
			if h.Kind == sequence.HookKind { // the named workflow brings it along
				continue
			}
			if *to == nil {
				*to = make(map[string][]v1alpha1.HookSpec)
			}
			(*to)[t.Name] = append((*to)[t.Name], h)
		}
	}
	add(&hooks.Before, t.Before)
	add(&hooks.After, t.After)
}

func task(t *workflow.Task, own v1alpha1.StepSpec) v1alpha1.TaskSpec {
	out := v1alpha1.TaskSpec{
		StepSpec: own, Join: t.Join, PointOfNoReturn: t.PointOfNoReturn, Always: t.Always, AtMostOnce: t.AtMostOnce,
	}
	if t.OwnPolicy() != "" {
		out.FailurePolicy = t.Policy
	}
	for _, n := range t.Needs {
		out.Needs = append(out.Needs, v1alpha1.Need{Task: n.Task, On: n.On, Optional: n.Optional, Timeout: duration(n.Timeout)})
	}
	for i := range t.Steps {
		switch s := &t.Steps[i]; {
		case i < t.Own():
			out.Before = append(out.Before, hook(s))
		case i > t.Own():
			out.After = append(out.After, hook(s))
		}
	}
	return out
}

func hook(s *workflow.Step) v1alpha1.HookSpec {
	out := v1alpha1.HookSpec{StepSpec: step(s)}
	_, out.Name, _ = strings.Cut(s.Name, "/")
	return out
}

func step(s *workflow.Step) v1alpha1.StepSpec {
	out := v1alpha1.StepSpec{Kind: s.Kind, With: raw(s.With), Timeout: duration(s.Timeout), TotalTimeout: duration(s.TotalTimeout)}
	if r := s.Retry; r != (workflow.Retry{}) {
		out.Retry = &v1alpha1.Retry{Max: r.Max, Delay: duration(r.Delay), Factor: r.Factor, MaxDelay: duration(r.MaxDelay), Recreate: r.Recreate}
	}
	switch u := s.Undo; {
	case u == nil:
	case u.None:
		out.Undo = raw([]byte(`"None"`))
	default:
		data, err := json.Marshal(struct {
			Kind string          `json:"kind"`
			With json.RawMessage `json:"with,omitempty"`
		}{u.Kind, u.With})
		if err == nil { // what is in a definition has been marshaled before
			out.Undo = raw(data)
		}
	}
	return out
}

func raw(data json.RawMessage) *apiextensionsv1.JSON {
	if len(data) == 0 {
		return nil
	}
	return &apiextensionsv1.JSON{Raw: data}
}

func duration(d workflow.Duration) *v1alpha1.Duration {
	if d == 0 {
		return nil
	}
	return &v1alpha1.Duration{Duration: time.Duration(d)}
}
