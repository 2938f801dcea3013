package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// HookKind is the kind of all hooks of the program, for use in policies.
const HookKind = "Hook"

// Sequence is a workflow up to a step. C is the context after this step.
type Sequence[C any] struct {
	plan    *plan
	restore restore[C]
}

type restore[C any] func(context.Context, *task.Call) (C, error)

// plan is shared by all sequences of one construction.
type plan struct {
	named    task.NamedWorkflow
	hooks    hooks
	problems []workflow.Problem
	// points are the tasks to which hooks can be bound. addHooks add the bound hooks in task order.
	points   []hook.Point
	addHooks []func(*hook.Binder)
}

// Begin starts a sequence with its first context, which embeds Context.
func Begin[C any](clusters *access.Clusters, start C) Sequence[C] {
	p := &plan{hooks: hooks{}}
	p.named.Kinds = task.Kinds{HookKind: p.hooks}
	restore := func(ctx context.Context, call *task.Call) (C, error) {
		c := start
		if e, ok := any(&c).(interface{ base() *Context }); ok {
			*e.base() = NewContext(ctx, call, clusters)
		}
		return c, nil
	}
	p.addHooks = append(p.addHooks, func(b *hook.Binder) { p.named.OnFailure = hookSpecs(p, "", b.OnFailure(), restore) })
	return Sequence[C]{plan: p, restore: restore}
}

// Then adds a step that starts only after the previous step succeeded. If the step extends the
// context, hooks after it run as hooks before the next step, because their context needs the step's
// output, which is then in the log.
func Then[A, B, O any](s Sequence[A], step Step[A, B, O]) Sequence[B] {
	p, name, i := s.plan, string(step.Task), len(s.plan.named.Tasks)
	k := &kind[A, B, O]{step: step, restore: s.restore}
	spec := v1alpha1.StepSpec{Name: name, Kind: kindName(name)}
	p.named.Kinds[spec.Kind] = k
	p.points = append(p.points, step.Task.Point())
	p.add(v1alpha1.TaskSpec{StepSpec: spec, PointOfNoReturn: step.PointOfNoReturn})
	p.addHooks = append(p.addHooks, func(b *hook.Binder) {
		tasks := p.named.Tasks
		tasks[i].Before = append(tasks[i].Before, hookSpecs(p, name, b.HooksAt(name, false), s.restore)...)
		switch after := hookSpecs(p, name, b.HooksAt(name, true), k.contextAfter); {
		case k.isSilent():
			tasks[i].After = after
		case i+1 < len(tasks):
			tasks[i+1].Before = after
		case len(after) > 0:
			p.problem(name, "hooks after the last task cannot see what it adds to the context: bind them before it")
		}
	})
	return Sequence[B]{plan: p, restore: k.contextAfter}
}

// kindName joins the words of the task's name: pre-upgrade becomes PreUpgrade.
func kindName(task string) (kind string) {
	for _, word := range strings.Split(task, "-") {
		kind += strings.ToUpper(word[:1]) + word[1:]
	}
	return kind
}

// Convert returns the sequence with another context, built from the current one. It adds no task.
func Convert[A, B any](s Sequence[A], to func(A) B) Sequence[B] {
	return Sequence[B]{plan: s.plan, restore: func(ctx context.Context, call *task.Call) (b B, err error) {
		a, err := s.restore(ctx, call)
		if err != nil {
			return b, err
		}
		return to(a), nil
	}}
}

// WithPause adds a Pause task with these inputs. It pauses other controllers until the run ends,
// including the hooks after the last task. It adds nothing if with is empty.
func WithPause[C any](s Sequence[C], with json.RawMessage) Sequence[C] {
	if len(with) > 0 {
		s.plan.add(v1alpha1.TaskSpec{StepSpec: v1alpha1.StepSpec{Name: "pause-controllers", Kind: "Pause", With: &apiextensionsv1.JSON{Raw: with}}})
	}
	return s
}

// Bind returns the workflow with the hooks of all registrars, and of the provider if the provider
// is a registrar.
func Bind[C any, R interface{ Name() string }](
	s Sequence[C], registrars []R, provider any, bind func(R, *hook.Binder) error,
) (task.NamedWorkflow, []workflow.Problem) {
	b, problems := hook.Bind(registrars, provider, s.plan.points, bind)
	made, more := s.Build(b)
	return made, append(problems, more...)
}

// Build returns the workflow with the hooks of the binder.
func (s Sequence[C]) Build(b *hook.Binder) (task.NamedWorkflow, []workflow.Problem) {
	p := s.plan
	for _, add := range p.addHooks {
		add(b)
	}
	if err := b.Err(); err != nil {
		p.problem("", err.Error())
	}
	return p.named, p.problems
}

func (p *plan) add(spec v1alpha1.TaskSpec) {
	if n := len(p.named.Tasks); n > 0 {
		spec.Needs = []v1alpha1.Need{{Task: p.named.Tasks[n-1].Name}}
	}
	p.named.Tasks = append(p.named.Tasks, spec)
}

func (p *plan) problem(task, message string) {
	p.problems = append(p.problems, workflow.Problem{Task: task, Field: "spec.workflow", Message: message})
}

// hooks is the task kind of hooks and failure handlers. It never runs a failure handler as a hook,
// or a hook as a failure handler.
type hooks map[hookKey]boundHook

type hookKey struct {
	name    string
	handler bool // whether it is a failure handler
}

type boundHook struct {
	run, undo func(context.Context, *task.Call) error
}

type hookWith struct {
	Hook string `json:"hook"`
}

// hookSpecs returns the manifest steps of hooks, or of failure handlers if name is "". A failure
// handler receives the first context of the workflow.
func hookSpecs[C any](p *plan, name string, list []hook.Hook, restore restore[C]) []v1alpha1.HookSpec {
	var specs []v1alpha1.HookSpec
	for _, h := range list {
		run, ok := h.Run.(hook.Handler[C])
		if !ok { // only for failure handlers: the binder has checked the types of hooks
			p.problem(name, fmt.Sprintf("hook %s was bound for another context: a failure handler of this workflow must take a *%s",
				h.Name, reflect.TypeFor[C]()))
			continue
		}
		b := boundHook{run: bindContext(restore, run), undo: func(context.Context, *task.Call) error { return nil }}
		if undo, ok := h.Undo.(hook.Handler[C]); ok {
			b.undo = bindContext(restore, undo)
		}
		p.hooks[hookKey{h.Name, name == ""}] = b
		data, _ := json.Marshal(hookWith{Hook: h.Name}) // a string can always be encoded
		specs = append(specs, v1alpha1.HookSpec{StepSpec: v1alpha1.StepSpec{Name: h.Name, Kind: HookKind, With: &apiextensionsv1.JSON{Raw: data}}})
	}
	return specs
}

func bindContext[C any](restore restore[C], handler hook.Handler[C]) func(context.Context, *task.Call) error {
	return func(ctx context.Context, call *task.Call) error {
		c, err := restore(ctx, call)
		if err != nil {
			return err
		}
		return handler(&c)
	}
}

func (h hooks) find(with json.RawMessage, handler bool) (boundHook, error) {
	var w hookWith
	if err := json.Unmarshal(with, &w); err != nil {
		return boundHook{}, fmt.Errorf("with: %w", err)
	}
	b, ok := h[hookKey{w.Hook, handler}]
	if !ok {
		what := "hook"
		if handler {
			what = "failure handler"
		}
		return b, fmt.Errorf("with.hook: this program has no %s %q: use the version that started the run", what, w.Hook)
	}
	return b, nil
}

// Validate checks that this program contains the hook or failure handler.
func (h hooks) Validate(with json.RawMessage) []workflow.Problem {
	_, err := h.find(with, false)
	if _, handler := h.find(with, true); err != nil && handler != nil {
		return []workflow.Problem{{Field: "hook", Message: err.Error()}}
	}
	return nil
}

// ReadsInputs marks hooks as a task.InputReader: their contexts are restored from the inputs.
func (h hooks) ReadsInputs() {}

// Run calls the handler.
func (h hooks) Run(ctx context.Context, call *task.Call) (json.RawMessage, error) {
	b, err := h.find(call.With, call.Failure != nil)
	if err != nil {
		return nil, task.Final(err)
	}
	if call.Failure != nil {
		call = withoutRecords(call)
	}
	return nil, b.run(ctx, call)
}

// Undo calls the hook's undo if it has one.
func (h hooks) Undo(ctx context.Context, call *task.Call) error {
	b, err := h.find(call.With, false)
	if err != nil {
		return task.Final(err)
	}
	return b.undo(ctx, withoutRecords(call))
}
