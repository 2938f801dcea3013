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

// expand replaces each Apply task that has expand: true with one task for each object, and adapts
// the needs of other tasks. origin maps each returned task to its index in the manifest.
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
		if !expands || e.manifestOnly && with.From != nil {
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
			problems = append(problems, expandNeeds(specs, base, made)...)
		}
	}
	return specs, origin, problems, nil
}

func originalProblem(p workflow.Problem, origin []int) workflow.Problem {
	rest, ok := strings.CutPrefix(p.Field, "spec.tasks[")
	number, rest, closed := strings.Cut(rest, "]")
	if n, err := strconv.Atoi(number); ok && closed && err == nil && n < len(origin) {
		p.Field = fmt.Sprintf("spec.tasks[%d]%s", origin[n], rest)
	}
	return p
}

// wantsExpansion returns the inputs of a task, and whether it is an Apply task that has expand:
// true. It returns false if the inputs cannot be decoded, because the kind then rejects them.
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

// concernsUnread reports whether a problem is about a part of an expanded task that Check did not
// read.
func concernsUnread(p workflow.Problem, spec *v1alpha1.WorkflowRunSpec) bool {
	for i := range spec.Tasks {
		if with, expands := wantsExpansion(&spec.Tasks[i]); expands && with.From != nil && strings.Contains(p.Message, `there is no task "`+spec.Tasks[i].Name+"/") {
			return true
		}
	}
	return false
}

// expandNeeds replaces needs for an expanded task: with needs for all parts if on success or
// completion, with needs for any part if on failure, and with nothing if there are no parts.
func expandNeeds(tasks []v1alpha1.TaskSpec, base string, parts []v1alpha1.TaskSpec) (problems []workflow.Problem) {
	for i := range tasks {
		t := &tasks[i]
		var needs []v1alpha1.Need
		optional := 0
		for _, n := range t.Needs {
			if n.Optional {
				optional++
			}
		}
		for j, n := range t.Needs {
			if n.Task != base {
				needs = append(needs, n)
				continue
			}
			failure := n.On == v1alpha1.OnFailure
			// One satisfied optional edge starts the task. For parts, that is correct only if all optional
			// needs mean "any part failed".
			if len(parts) > 1 && (n.Optional && (!failure || optional > 1) || failure && !n.Optional && optional > 0) {
				problems = append(problems, workflow.Problem{
					Task: t.Name, Field: fmt.Sprintf("needs[%d]", j),
					Message: fmt.Sprintf("%s expands to %d parts, and edges to them cannot be combined with other optional edges", base, len(parts)),
					Remedy:  "use an edge to one part, for example " + parts[0].Name + ", or add a task in between",
				})
				continue
			}
			for _, part := range parts {
				edge := *n.DeepCopy()
				edge.Task = part.Name
				edge.Optional = n.Optional || failure && len(parts) > 1
				needs = append(needs, edge)
			}
		}
		t.Needs = needs
	}
	return problems
}
