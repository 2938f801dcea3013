package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/document"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// Env is the environment in which a process builds and runs definitions.
type Env struct {
	// Kinds are the task kinds of the process.
	Kinds         task.Kinds
	NamedWorkflow func(ctx context.Context, namespace, name string, params json.RawMessage) (task.NamedWorkflow, []workflow.Problem)
	// DefaultPolicy is the failure policy of runs that specify none; "" means Abort.
	DefaultPolicy v1alpha1.FailurePolicy

	// Diagnose adds a Diagnose failure handler to each run that has none and whose steps work on a
	// cluster.
	Diagnose   bool
	CheckReads bool

	// manifestOnly is set by Check: only the manifest is read.
	manifestOnly bool
}

// Definition builds the definition of a manifest. It returns nil if a problem is more than a
// warning. It returns an error if manifests could not be read from a cluster.
func (e *Env) Definition(ctx context.Context, namespace, name string, spec *v1alpha1.WorkflowRunSpec) (*workflow.Definition, []workflow.Problem, error) {
	spec = spec.DeepCopy()
	kinds, evidence := e.Kinds, json.RawMessage(nil)
	var problems []workflow.Problem
	if spec.Workflow != nil {
		if len(spec.Tasks) > 0 {
			problems = append(problems, workflow.Problem{Field: "spec.tasks", Message: "a named workflow has its own tasks", Remedy: "set either tasks or workflow"})
		}
		named, more := e.NamedWorkflow(ctx, namespace, spec.Workflow.Name, workflow.RawJSON(spec.Workflow.Params))
		problems = append(problems, more...)
		spec.Tasks, kinds, evidence = named.Tasks, mergeKinds(kinds, named.Kinds), named.Diagnose
		problems = append(problems, bindHooks(spec)...)
		var taken []workflow.Problem
		spec.Hooks.OnFailure, taken = mergeHandlers(spec.Hooks.OnFailure, named.OnFailure)
		problems = append(problems, taken...)
	}
	if e.CheckReads && !e.manifestOnly {
		unread, err := e.CheckReadable(ctx, namespace, name, spec)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, unread...)
	}
	tasks, origin, more, err := e.expand(ctx, namespace, name, spec)
	if err != nil {
		return nil, nil, err
	}
	spec.Tasks = tasks
	problems = append(problems, more...)
	d, more := workflow.Build(spec, workflow.Options{
		Namespace: namespace, Name: name, DefaultPolicy: e.DefaultPolicy,
		Kind: func(kind string) (workflow.KindInfo, bool) { return kindInfo(kinds, kind) },
	})
	for _, p := range more {
		problems = append(problems, hookProblem(originalProblem(p, origin), spec))
	}
	if slices.ContainsFunc(problems, func(p workflow.Problem) bool { return !p.Warning }) {
		return nil, problems, nil
	}
	if e.Diagnose {
		addDiagnose(d, evidence)
	}
	return d, problems, nil
}

// CheckReadable tries to read the files and objects that the tasks of a named workflow will read.
// It returns an error if a cluster cannot be read now, or may have the objects later.
func (e *Env) CheckReadable(ctx context.Context, namespace, name string, spec *v1alpha1.WorkflowRunSpec) ([]workflow.Problem, error) {
	if spec.Workflow == nil {
		return nil, nil
	}
	named, _ := e.NamedWorkflow(ctx, namespace, spec.Workflow.Name, workflow.RawJSON(spec.Workflow.Params))
	if named.Read == nil {
		return nil, nil
	}
	return named.Read(ctx, &task.Call{Attempt: 1, Namespace: namespace, Name: name, ServiceAccount: spec.ServiceAccountName})
}

func bindHooks(spec *v1alpha1.WorkflowRunSpec) (problems task.Problems) {
	w := spec.Workflow
	names := make([]string, len(spec.Tasks))
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		names[i] = t.Name
		t.Before, t.After = append(t.Before, w.Hooks.Before[t.Name]...), append(t.After, w.Hooks.After[t.Name]...)
	}
	if len(names) == 0 { // there is no such workflow or provider
		return nil
	}
	check := func(where string, hooks map[string][]v1alpha1.HookSpec) {
		for _, name := range slices.Sorted(maps.Keys(hooks)) {
			if !slices.Contains(names, name) {
				problems.Add(fmt.Sprintf("spec.workflow.hooks.%s.%s", where, name), fmt.Sprintf("%s has no task %q", w.Name, name),
					"use one of "+strings.Join(names, ", "))
			}
		}
	}
	check("before", w.Hooks.Before)
	check("after", w.Hooks.After)
	return problems
}

// hookProblem returns the problem with the right field. For a hook that bindHooks added, that is
// the field in spec.workflow.hooks.
func hookProblem(p workflow.Problem, spec *v1alpha1.WorkflowRunSpec) workflow.Problem {
	var i, n int
	if _, err := fmt.Sscanf(p.Field, "spec.tasks[%d].", &i); err != nil || spec.Workflow == nil || i >= len(spec.Tasks) {
		return p
	}
	t, hooks := &spec.Tasks[i], &spec.Workflow.Hooks
	for where, own := range map[string]int{
		"before": len(t.Before) - len(hooks.Before[t.Name]), "after": len(t.After) - len(hooks.After[t.Name]),
	} {
		rest, found := strings.CutPrefix(p.Field, fmt.Sprintf("spec.tasks[%d].%s[", i, where))
		number, rest, _ := strings.Cut(rest, "]")
		if _, err := fmt.Sscan(number, &n); found && err == nil && n >= own {
			p.Field = fmt.Sprintf("spec.workflow.hooks.%s.%s[%d]%s", where, t.Name, n-own, rest)
		}
	}
	return p
}

// mergeHandlers returns the failure handlers of the manifest, followed by those of the named
// workflow.
func mergeHandlers(own, named []v1alpha1.HookSpec) (all []v1alpha1.HookSpec, problems task.Problems) {
	all = own
	for _, h := range named {
		if i := slices.IndexFunc(own, func(o v1alpha1.HookSpec) bool { return o.Name == h.Name }); i >= 0 {
			problems.Add(fmt.Sprintf("spec.hooks.onFailure[%d].name", i), fmt.Sprintf("the workflow has a handler %q", h.Name), "choose another name")
			continue
		}
		all = append(all, h)
	}
	return all, problems
}

// KindsFor returns the kinds that a run in the log may use.
func (e *Env) KindsFor(ctx context.Context, h workflow.Header) (task.Kinds, error) {
	if h.Workflow == nil {
		return e.Kinds, nil
	}
	named, problems := e.NamedWorkflow(ctx, h.Namespace, h.Workflow.Name, h.Workflow.Params)
	for _, p := range problems {
		if !p.Warning {
			return nil, fmt.Errorf("the workflow %s can no longer be constructed: %s", h.Workflow.Name, p)
		}
	}
	return mergeKinds(e.Kinds, named.Kinds), nil
}

func kindInfo(kinds task.Kinds, name string) (workflow.KindInfo, bool) {
	kind, ok := kinds[name]
	if !ok {
		return workflow.KindInfo{}, false
	}
	info := workflow.KindInfo{Validate: kind.Validate}
	if holder, ok := kind.(task.Holder); ok {
		info.Holds = holder.Holds()
	}
	if asker, ok := kind.(task.Interactive); ok {
		info.Interactive = asker.Interactive()
	}
	if releaser, ok := kind.(task.Releaser); ok {
		info.Releases = releaser.Releases
	}
	if name == "Apply" {
		info.Type = objectType
	}
	if keeper, ok := kind.(task.Irreversible); ok {
		info.Irreversible = keeper.Irreversible
	}
	return info, true
}

// objectType returns the type of all objects as Kind or Kind.group. It returns "" if the types
// differ or the objects are read later.
func objectType(with json.RawMessage) (found string) {
	type object struct{ APIVersion, Kind string }
	var w struct {
		Manifests json.RawMessage
		Only      []object
	}
	if json.Unmarshal(with, &w) != nil {
		return ""
	}
	var text string
	switch {
	case len(w.Only) > 0:
	case json.Unmarshal(w.Manifests, &text) == nil:
		for raw, err := range document.Each([]byte(text)) {
			var o object
			if err != nil || json.Unmarshal(raw, &o) != nil {
				return ""
			}
			w.Only = append(w.Only, o)
		}
	default:
		_ = json.Unmarshal(w.Manifests, &w.Only)
	}
	for i, o := range w.Only {
		gv, err := schema.ParseGroupVersion(o.APIVersion)
		name := schema.GroupKind{Group: gv.Group, Kind: o.Kind}.String()
		if err != nil || i > 0 && name != found {
			return ""
		}
		found = name
	}
	return found
}

func mergeKinds(a, b task.Kinds) task.Kinds {
	all := task.Kinds{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// Check returns the problems that can be found without reading from a cluster.
func (e *Env) Check(namespace, name string, spec *v1alpha1.WorkflowRunSpec) []workflow.Problem {
	blind := *e
	blind.manifestOnly = true
	_, problems, _ := blind.Definition(context.Background(), namespace, name, spec) // without reads there is no error
	return slices.DeleteFunc(problems, func(p workflow.Problem) bool { return concernsUnread(p, spec) })
}
