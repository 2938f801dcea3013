package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/apply"
)

// expand makes a task of each object of an Apply task that asks for it, and has what needs the task need all of its parts.
// The error is one of a cluster that could not be asked for the manifests.
//
// origin is the index in the manifest that each task comes from; nil if nothing was expanded.
func (e *Env) expand(ctx context.Context, namespace, name string, spec *v1alpha1.WorkflowRunSpec) (specs []v1alpha1.TaskSpec, origin []int, problems []workflow.Problem, err error) {
	kind, ok := e.Kinds["Apply"].(*apply.Kind)
	if !ok {
		return spec.Tasks, nil, nil, nil
	}
	parts := make(map[string][]v1alpha1.TaskSpec)
	add := func(i int, list ...v1alpha1.TaskSpec) {
		for _, t := range list {
			specs, origin = append(specs, t), append(origin, i)
		}
	}
	for i := range spec.Tasks {
		base := &spec.Tasks[i]
		with, expands := wantsExpansion(base)
		if !expands || e.blind && with.From != nil {
			add(i, *base)
			continue
		}
		field := fmt.Sprintf("spec.tasks[%d].", i)
		c := &task.Call{Task: base.Name, Attempt: 1, Namespace: namespace, Name: name, ServiceAccount: spec.ServiceAccountName}
		objects, err := kind.Objects(ctx, c, with)
		if err != nil && with.From != nil && !task.IsFinal(err) {
			return nil, nil, nil, fmt.Errorf("task %q: %w", base.Name, err)
		}
		if err != nil {
			problems = append(problems, workflow.Problem{Task: base.Name, Field: field + "with", Message: err.Error(), Remedy: "correct the manifests"})
			add(i, *base)
			continue
		}
		made, more := apply.Expand(*base, objects)
		for _, p := range more {
			p.Field = field + p.Field
			problems = append(problems, p)
		}
		if len(more) > 0 {
			add(i, *base)
			continue
		}
		parts[base.Name] = made
		add(i, made...)
	}
	for i := range spec.Tasks {
		base := spec.Tasks[i].Name
		if made, expanded := parts[base]; expanded {
			problems = append(problems, needParts(specs, base, made)...)
		}
	}
	if len(parts) == 0 {
		origin = nil
	}
	return specs, origin, problems, nil
}

// written makes the field of a problem that of the manifest: after an expansion tasks stand elsewhere.
func written(p workflow.Problem, origin []int) workflow.Problem {
	rest, ok := strings.CutPrefix(p.Field, "spec.tasks[")
	number, rest, closed := strings.Cut(rest, "]")
	if n, err := strconv.Atoi(number); ok && closed && err == nil && n < len(origin) {
		p.Field = fmt.Sprintf("spec.tasks[%d]%s", origin[n], rest)
	}
	return p
}

// wantsExpansion reads with.expand of an Apply. What cannot be read is for the kind to refuse.
func wantsExpansion(base *v1alpha1.TaskSpec) (*apply.With, bool) {
	if base.Kind != "Apply" || base.With == nil {
		return nil, false
	}
	var with apply.With
	if err := json.Unmarshal(base.With.Raw, &with); err != nil || !with.Expand {
		return nil, false
	}
	return &with, true
}

// unseen says that a problem is about a part of a task whose manifests a check without a cluster does not read.
func unseen(p workflow.Problem, spec *v1alpha1.WorkflowRunSpec) bool {
	for i := range spec.Tasks {
		if with, expands := wantsExpansion(&spec.Tasks[i]); expands && with.From != nil && strings.Contains(p.Message, `there is no task "`+spec.Tasks[i].Name+"/") {
			return true
		}
	}
	return false
}
