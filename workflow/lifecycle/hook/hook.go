package hook

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"scute.dev/workflow"
)

// Handler is the function of a hook. It is called again after a crash, so it must observe before it
// acts. It must return soon after its context ends, and must not write secrets to the log.
type Handler[C any] func(c *C) error

// Task is the name of a task of a named workflow. Before and After are the contexts that are known
// before and after it.
type Task[Before, After any] string

// Point returns the name of the task and its two context types as a value, for NewBinder.
func (t Task[B, A]) Point() Point {
	return Point{Name: string(t), before: reflect.TypeFor[B](), after: reflect.TypeFor[A]()}
}

// Point is a task to which hooks can be bound.
type Point struct {
	Name          string
	before, after reflect.Type
}

// Binder collects the hooks of one workflow. It is not safe for concurrent use.
type Binder struct {
	points    []Point
	registrar string
	hooks     []Hook
	problems  []error
}

// Hook is a bound handler.
type Hook struct {
	// Name is unique in the workflow, among hooks or among failure handlers, and must not change.
	Name string
	// Task is "" for a failure handler.
	Task  string
	After bool
	// Run and Undo are of type Handler[C], where C is the context at that point. Undo may be nil.
	Run, Undo any
}

// NewBinder returns a Binder for hooks of these tasks.
func NewBinder(points ...Point) *Binder { return &Binder{points: points} }

// SetRegistrar sets the registrar of all hooks that are bound from now on. The names of these hooks
// begin with the registrar's name.
func (b *Binder) SetRegistrar(registrar string) *Binder {
	b.registrar = registrar
	return b
}

// HooksAt returns the hooks before or after a task, in the order in which they were bound.
func (b *Binder) HooksAt(task string, after bool) []Hook {
	var found []Hook
	for _, h := range b.hooks {
		if h.Task == task && h.After == after {
			found = append(found, h)
		}
	}
	return found
}

// Err returns all errors that Before, After and OnFailure have returned.
func (b *Binder) Err() error {
	return errors.Join(b.problems...)
}

// OnFailure returns the failure handlers in the order in which they were bound.
func (b *Binder) OnFailure() []Hook { return b.HooksAt("", false) }

// Before binds a handler that runs before a task. If it fails, the task fails without having
// started. undo (at most one) reverts the handler's work in a rollback.
func Before[B, A any](b *Binder, t Task[B, A], run Handler[B], undo ...Handler[B]) error {
	return bind(b, t.Point(), false, run, undo)
}

// After binds a handler that runs after a task. The next task starts only after it succeeds.
func After[B, A any](b *Binder, t Task[B, A], run Handler[A], undo ...Handler[A]) error {
	return bind(b, t.Point(), true, run, undo)
}

// OnFailure binds a handler that runs once for each task that failed permanently, and once when a
// failure ends the run. C is the first context of the workflow. A failure of the handler is
// recorded and has no other effect. It is never undone.
func OnFailure[C any](b *Binder, run Handler[C]) error {
	if run == nil {
		return b.refuse(" to failures: the handler is nil")
	}
	b.hooks = append(b.hooks, Hook{Name: b.name(""), Run: run})
	return nil
}

func bind[C any](b *Binder, p Point, after bool, run Handler[C], undo []Handler[C]) error {
	i := slices.IndexFunc(b.points, func(known Point) bool { return known.Name == p.Name })
	switch {
	case i < 0:
		return b.refuse(": there is no task %q in this workflow: its tasks are %s", p.Name, b.names())
	case b.points[i] != p:
		return b.refuse(": %q belongs to another workflow, with the contexts %s and %s: in this workflow they are %s and %s",
			p.Name, p.before, p.after, b.points[i].before, b.points[i].after)
	case run == nil:
		return b.refuse(" to %q: the handler is nil", p.Name)
	case len(undo) > 1:
		return b.refuse(" to %q: there are %d undo handlers: pass at most one", p.Name, len(undo))
	}
	h := Hook{Name: b.name(p.Name), Task: p.Name, After: after, Run: run}
	if len(undo) > 0 {
		h.Undo = undo[0]
	}
	b.hooks = append(b.hooks, h)
	return nil
}

func (b *Binder) refuse(format string, args ...any) error {
	err := errors.New("binding a hook of " + b.registrar + fmt.Sprintf(format, args...))
	b.problems = append(b.problems, err)
	return err
}

// name returns the name of the registrar's next hook. Failure handlers are numbered separately, so
// adding one later does not rename hooks.
func (b *Binder) name(task string) string {
	n := 1
	for _, h := range b.hooks {
		if (h.Task == "") == (task == "") && strings.HasPrefix(h.Name, b.registrar+"-") {
			n++
		}
	}
	return fmt.Sprintf("%s-%d", b.registrar, n)
}

func (b *Binder) names() string {
	names := make([]string, len(b.points))
	for i, p := range b.points {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// Bind calls bind for each registrar, and for the provider if it is a registrar. It returns a
// problem for each error that the Binder did not record.
func Bind[R interface{ Name() string }](registrars []R, provider any, points []Point, bind func(R, *Binder) error) (*Binder, []workflow.Problem) {
	b := NewBinder(points...)
	if r, ok := provider.(R); ok {
		registrars = append(registrars[:len(registrars):len(registrars)], r)
	}
	var problems []workflow.Problem
	for _, r := range registrars {
		known := len(b.problems)
		err := bind(r, b.SetRegistrar(r.Name()))
		if err != nil && len(b.problems) == known { // the Binder recorded all other errors, and Err returns them
			problems = append(problems, workflow.Problem{Field: "spec.workflow", Message: "hooks of " + r.Name() + ": " + err.Error()})
		}
	}
	return b, problems
}
