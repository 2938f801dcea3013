package workflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"scute.dev/api/v1alpha1"
)

// KindInfo describes a task kind to Build.
type KindInfo struct {
	// Validate checks inputs; a problem's Field is relative to `with`. May be nil.
	Validate func(with json.RawMessage) []Problem
	Holds    bool
	// Interactive is set if a step of this kind waits for an operator. Such a kind cannot be a failure
	// handler or an undo.
	Interactive bool
	// Releases returns the name of the task whose hold is released by a step with these inputs, or "".
	// May be nil.
	Releases func(with json.RawMessage) string
	// Type returns the type of all objects that a step with these inputs applies, as Kind or
	// Kind.group, or "" if that is not known. It is nil if the kind applies no objects.
	Type func(with json.RawMessage) string
	// Irreversible reports whether the kind has no inverse for these inputs. In that case a rollback
	// keeps the effect, unless the step has its own undo. May be nil.
	Irreversible func(with json.RawMessage) bool
}

// Options are the arguments of Build in addition to the manifest.
type Options struct {
	Namespace, Name string
	// DefaultPolicy is the failure policy set by the daemon's or scutectl's flag; "" means Abort.
	DefaultPolicy v1alpha1.FailurePolicy
	Kind          func(name string) (KindInfo, bool)
}

// Build converts a manifest that passed its schema to a definition, with all defaults and policies
// resolved (precedence: task, object type, kind, workflow, default). It returns all problems at
// once, and no definition if a problem is more than a warning.
func Build(spec *v1alpha1.WorkflowRunSpec, o Options) (*Definition, []Problem) {
	b := &builder{
		spec: spec, o: o, kinds: make(map[string]*v1alpha1.KindPolicy), used: make(map[string]bool), names: make(map[string]int),
	}
	d := b.definition()
	b.checkGraph(d)
	b.checkKeptEffects(d)
	b.checkSize(d)
	if slices.ContainsFunc(b.problems, func(p Problem) bool { return !p.Warning }) {
		return nil, b.problems
	}
	return d, b.problems
}

var (
	validName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)                          // of a task
	objectType = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`) // Kind or Kind.group
)

type builder struct {
	spec        *v1alpha1.WorkflowRunSpec
	o           Options
	kinds       map[string]*v1alpha1.KindPolicy
	used        map[string]bool // policy entries that match the type of an applied object
	names       map[string]int  // task indices by name
	fields      []string        // the manifest field of each task
	steps       [][]string      // the manifest fields of each task's steps
	keptEffects []Problem       // effects that a rollback keeps; reported only if some policy can roll back
	parents     [][]int         // for each task, the indices of the tasks it needs
	problems    []Problem
}

func (b *builder) addError(task, field, message, remedy string) {
	b.problems = append(b.problems, Problem{Task: task, Field: field, Message: message, Remedy: remedy})
}

func (b *builder) addWarning(task, field, message, remedy string) {
	b.problems = append(b.problems, Problem{Task: task, Field: field, Message: message, Remedy: remedy, Warning: true})
}

func (b *builder) definition() *Definition {
	s := b.spec
	policy, _ := b.runPolicy()
	d := &Definition{Header: Header{
		Namespace: b.o.Namespace, Name: b.o.Name, ServiceAccount: s.ServiceAccountName,
		Policy: policy, Deadline: Duration(s.Deadline.Or(0)),
	}}
	if s.Workflow != nil {
		d.Workflow = &NamedWorkflow{Name: s.Workflow.Name, Params: RawJSON(s.Workflow.Params)}
	}
	for i := range s.Policies {
		b.kinds[s.Policies[i].Kind] = &s.Policies[i]
	}
	b.hooks(d, StagePre, "spec.hooks.pre", "pre/", s.Hooks.Pre)
	if len(s.Tasks) == 0 && s.Workflow == nil {
		b.addError("", "spec.tasks", "no tasks are listed", "list tasks, or name a workflow")
	}
	for i := range s.Tasks {
		b.task(d, &s.Tasks[i], fmt.Sprintf("spec.tasks[%d]", i))
	}
	b.hooks(d, StagePost, "spec.hooks.post", "post/", s.Hooks.Post)
	handlers := make(map[string]bool)
	for i := range s.Hooks.OnFailure {
		h, field := &s.Hooks.OnFailure[i], fmt.Sprintf("spec.hooks.onFailure[%d]", i)
		b.checkUnique(handlers, h.Name, h.Name, field, "another handler has this name")
		b.checkNotInteractive(h.Name, field+".kind", h.Kind)
		b.checkHandler(h, field)
		d.OnFailure = append(d.OnFailure, b.step("", field, "onFailure/"+h.Name, &h.StepSpec))
	}
	b.unusedPolicies()
	return d
}

// unusedPolicies warns about entries of spec.policies that are no task kind and match no object
// type. It rejects an entry that cannot be either of them.
func (b *builder) unusedPolicies() {
	for i, p := range b.spec.Policies {
		field := fmt.Sprintf("spec.policies[%d].kind", i)
		switch _, known := b.o.Kind(p.Kind); {
		case known || b.used[p.Kind]:
		case !objectType.MatchString(p.Kind):
			b.addError("", field, fmt.Sprintf("%q is neither a task kind nor an object type", p.Kind), "write it as Exec, Deployment or Deployment.apps")
		default:
			b.addWarning("", field, fmt.Sprintf("no task kind is named %q, and no task applies objects of this type", p.Kind), "check the spelling")
		}
	}
}

// policies returns the entries of spec.policies for the type of the step's objects and for the
// step's kind. The first takes precedence.
func (b *builder) policies(spec *v1alpha1.StepSpec) (ofType, ofKind *v1alpha1.KindPolicy) {
	if info, ok := b.o.Kind(spec.Kind); ok && info.Type != nil {
		full := info.Type(RawJSON(spec.With))
		kind, _, _ := strings.Cut(full, ".")
		for _, name := range []string{full, kind} {
			if _, task := b.o.Kind(name); !task && ofType == nil && b.kinds[name] != nil {
				ofType, b.used[name] = b.kinds[name], true
			}
		}
	}
	return ofType, b.kinds[spec.Kind]
}

func (b *builder) checkHandler(h *v1alpha1.HookSpec, field string) {
	for _, f := range []struct {
		name string
		set  bool
	}{{"retry", h.Retry != nil}, {"totalTimeout", h.TotalTimeout != nil}, {"undo", h.Undo != nil}} {
		if f.set {
			b.addError(h.Name, field+"."+f.name, "a handler is called once per failure and is never undone", "remove it, or set timeout to limit the call")
		}
	}
}

// checkNotInteractive rejects a kind that waits for an operator. Only tasks and their hooks may use
// such a kind.
func (b *builder) checkNotInteractive(task, field, kind string) {
	if info, ok := b.o.Kind(kind); ok && info.Interactive {
		b.addError(task, field, kind+" waits for an operator, which only tasks and their own hooks can do",
			"use another kind here; with `failurePolicy: Pause`, a failed task waits for an operator")
	}
}

// FailurePolicies returns all failure policies.
func FailurePolicies() []string {
	return []string{string(v1alpha1.Abort), string(v1alpha1.Rollback), string(v1alpha1.Ignore), string(v1alpha1.IgnoreChildren), string(v1alpha1.FailurePause)}
}

func (b *builder) runPolicy() (v1alpha1.FailurePolicy, string) {
	switch {
	case b.spec.FailurePolicy != "":
		return b.spec.FailurePolicy, "workflow"
	case b.o.DefaultPolicy != "":
		return b.o.DefaultPolicy, "flag"
	default:
		return v1alpha1.Abort, "default"
	}
}

// hooks adds the hooks of the run to the definition, as sequential tasks of a separate stage.
func (b *builder) hooks(d *Definition, stage Stage, field, prefix string, hooks []v1alpha1.HookSpec) {
	for i := range hooks {
		spec := &v1alpha1.TaskSpec{StepSpec: hooks[i].StepSpec}
		spec.Name = prefix + hooks[i].Name
		if i > 0 {
			spec.Needs = []v1alpha1.Need{{Task: prefix + hooks[i-1].Name}}
		}
		b.task(d, spec, fmt.Sprintf("%s[%d]", field, i))
		d.Tasks[len(d.Tasks)-1].Stage = stage
	}
}

func isReserved(name string) bool {
	return strings.HasPrefix(name, "pre/") || strings.HasPrefix(name, "post/") || strings.HasPrefix(name, "onFailure/")
}

func (b *builder) task(d *Definition, spec *v1alpha1.TaskSpec, field string) {
	if _, twice := b.names[spec.Name]; twice {
		b.addError(spec.Name, field+".name", "another task has this name", "use a unique name")
	}
	if strings.HasPrefix(field, "spec.tasks") && (isReserved(spec.Name) || !validName.MatchString(spec.Name)) {
		b.addError(spec.Name, field+".name", fmt.Sprintf("%q is not a valid name", spec.Name),
			"use letters, digits, '-', '_', '.' and '/', beginning with a letter or a digit; pre/, post/ and onFailure/ are reserved")
	}
	b.names[spec.Name] = len(d.Tasks)
	b.fields = append(b.fields, field)
	t := Task{Name: spec.Name, Stage: StageMain, Join: spec.Join, PointOfNoReturn: spec.PointOfNoReturn, Always: spec.Always, AtMostOnce: spec.AtMostOnce}
	var steps []string
	add := func(field, name string, step *v1alpha1.StepSpec) {
		t.Steps, steps = append(t.Steps, b.step(spec.Name, field, name, step)), append(steps, field)
	}
	hooks := func(where string, list []v1alpha1.HookSpec) {
		names := make(map[string]bool)
		for i := range list {
			at := fmt.Sprintf("%s.%s[%d]", field, where, i)
			b.checkUnique(names, list[i].Name, spec.Name, at, "another hook of this task has this name") // the log identifies steps by name
			add(at, where+"/"+list[i].Name, &list[i].StepSpec)
		}
	}
	hooks("before", spec.Before)
	add(field, "", &spec.StepSpec)
	own := t.Steps[len(spec.Before)]
	hooks("after", spec.After)
	b.steps = append(b.steps, steps)
	t.Policy, t.PolicySource = b.runPolicy()
	ofType, ofKind := b.policies(&spec.StepSpec)
	if ofKind != nil && ofKind.FailurePolicy != "" {
		t.Policy, t.PolicySource = ofKind.FailurePolicy, "kind"
	}
	if ofType != nil && ofType.FailurePolicy != "" {
		t.Policy, t.PolicySource = ofType.FailurePolicy, "type"
	}
	if spec.FailurePolicy != "" {
		t.Policy, t.PolicySource = spec.FailurePolicy, "task"
	}
	for i, n := range spec.Needs {
		t.Needs = append(t.Needs, b.need(spec.Name, fmt.Sprintf("%s.needs[%d]", field, i), n))
	}
	if spec.AtMostOnce && spec.Always {
		b.addError(spec.Name, field+".atMostOnce", "a task that may run at most once cannot run on every resume", "remove atMostOnce or always")
	}
	if spec.AtMostOnce && own.Retry.Max > 0 {
		b.addError(spec.Name, field+".atMostOnce", "a task that may run at most once cannot be retried", "set retry.max to 0, or remove atMostOnce")
	}
	d.Tasks = append(d.Tasks, t)
}

func (b *builder) checkUnique(names map[string]bool, name, task, field, message string) {
	if names[name] {
		b.addError(task, field+".name", message, "use a unique name")
	}
	names[name] = true
}

func (b *builder) need(task, field string, n v1alpha1.Need) Need {
	out := Need{Task: n.Task, On: n.On, Optional: n.Optional, Timeout: Duration(n.Timeout.Or(0))}
	switch n.On {
	case "":
		out.On = v1alpha1.OnSuccess
	case v1alpha1.OnSuccess, v1alpha1.OnFailure, v1alpha1.OnCompletion:
	default:
		b.addError(task, field+".on", fmt.Sprintf("%q is not a valid outcome", n.On), "use Success, Failure or Completion")
	}
	return out
}

func (b *builder) step(task, field, name string, spec *v1alpha1.StepSpec) Step {
	if task == "" {
		task = spec.Name
	}
	info, ok := b.o.Kind(spec.Kind)
	if !ok {
		b.addError(task, field+".kind", fmt.Sprintf("unknown kind %q", spec.Kind), "check the spelling, or run a version of scute that supports it")
	}
	with := RawJSON(spec.With)
	b.validate(info, with, task, field+".with.")
	step := Step{Name: name, Kind: spec.Kind, With: with, Holds: info.Holds, Undo: b.undo(task, field, spec)}
	if info.Releases != nil {
		step.Releases = info.Releases(with)
	}
	retry, timeout, total := spec.Retry, spec.Timeout, spec.TotalTimeout
	ofType, ofKind := b.policies(spec)
	for _, k := range []*v1alpha1.KindPolicy{ofType, ofKind} {
		if k != nil {
			retry, timeout, total = cmp.Or(retry, k.Retry), cmp.Or(timeout, k.Timeout), cmp.Or(total, k.TotalTimeout)
		}
	}
	step.Retry = b.retry(task, field+".retry", retry)
	step.Timeout = Duration(timeout.Or(0))
	step.TotalTimeout = Duration(total.Or(0))
	if ok && step.Undo == nil && info.Irreversible != nil && info.Irreversible(with) {
		b.keptEffects = append(b.keptEffects, Problem{
			Task: task, Field: field + ".undo", Warning: true, Message: "a rollback keeps its effects: " + spec.Kind + " has no built-in inverse",
			Remedy: "set undo, or `undo: None` if there is nothing to undo",
		})
		if step.Retry.Recreate {
			b.addWarning(task, field+".retry.recreate", "nothing is undone before another attempt: "+spec.Kind+" has no built-in inverse", "set undo")
		}
	}
	if step.Timeout > 0 && step.TotalTimeout > 0 && step.Timeout > step.TotalTimeout {
		b.addError(task, field+".timeout", "timeout is longer than totalTimeout", "lower timeout, or raise totalTimeout")
	}
	return step
}

func (b *builder) undo(task, field string, spec *v1alpha1.StepSpec) *Undo {
	data := RawJSON(spec.Undo)
	if data == nil {
		return nil
	}
	var none string
	if json.Unmarshal(data, &none) == nil && none == "None" {
		return &Undo{None: true}
	}
	var long struct {
		Kind    string          `json:"kind"`
		With    json.RawMessage `json:"with"`
		Command json.RawMessage `json:"command"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&long); err != nil || (long.Command != nil) == (long.Kind != "") || long.Command != nil && long.With != nil {
		b.addError(task, field+".undo", "it must be None, {command: [...]} or {kind: KIND, with: {...}}", "use one of these forms")
		return nil
	}
	undo, at := &Undo{Kind: long.Kind, With: long.With}, field+".undo.with."
	if long.Command != nil {
		at = field + ".undo."
		undo = &Undo{Kind: "Exec", With: slices.Concat([]byte(`{"command":`), long.Command, []byte("}"))}
	}
	b.checkNotInteractive(task, field+".undo.kind", undo.Kind)
	info, ok := b.o.Kind(undo.Kind)
	if !ok {
		b.addError(task, field+".undo.kind", fmt.Sprintf("unknown kind %q", undo.Kind), "check the spelling")
	}
	b.validate(info, undo.With, task, at)
	return undo
}

func (b *builder) validate(info KindInfo, with json.RawMessage, task, field string) {
	if info.Validate == nil {
		return
	}
	for _, p := range info.Validate(with) {
		p.Task, p.Field = task, strings.TrimSuffix(field+p.Field, ".")
		b.problems = append(b.problems, p)
	}
}

func (b *builder) retry(task, field string, r *v1alpha1.Retry) Retry {
	if r == nil || r.Max == 0 && !r.Recreate {
		return Retry{}
	}
	delay := Duration(r.Delay.Or(time.Second))
	out := Retry{
		Max: r.Max, Factor: cmp.Or(r.Factor, 2), Recreate: r.Recreate,
		Delay: delay, MaxDelay: cmp.Or(Duration(r.MaxDelay.Or(0)), max(Duration(time.Minute), delay)),
	}
	if out.MaxDelay < out.Delay {
		b.addError(task, field+".maxDelay", "it is shorter than delay", "raise it, or lower delay")
	}
	return out
}

// RawJSON returns the JSON of a field of a manifest; nil if the field is not set or null.
func RawJSON(j *apiextensionsv1.JSON) json.RawMessage {
	if j == nil || len(j.Raw) == 0 || string(j.Raw) == "null" {
		return nil
	}
	return j.Raw
}
