package hook

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"scute.dev/workflow"
)

// Handler is what runs. It observes before it acts: after a death it is called again. It returns soon after its context ends, because a process
// that is asked to end waits for it. What it writes to the log, by its context, holds no secret.
type Handler[C any] func(c *C) error

// Task is the name of a task of a named workflow. Before and After are the contexts that are known before and after it.
type Task[Before, After any] string

// Point is the task without its types, for NewBinder.
func (t Task[B, A]) Point() Point {
	return Point{Name: string(t), before: reflect.TypeFor[B](), after: reflect.TypeFor[A]()}
}

// Point is a task that hooks may be bound to.
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
	// Name is unique among all hooks of the workflow, or among all its handlers of failures, and the same at each construction.
	Name string
	// Task is "" for a handler of failures.
	Task string
	// After the task; else before it.
	After bool
	// Run and Undo are of type Handler[C], C being the context at that place; Undo may be nil.
	Run, Undo any
}

// NewBinder takes hooks for these tasks.
func NewBinder(points ...Point) *Binder { return &Binder{points: points} }

// As names the part of the program whose hooks are bound next. Names of hooks begin with it.
func (b *Binder) As(registrar string) *Binder {
	b.registrar = registrar
	return b
}

// At are the hooks before or after a task, in the order in which they were bound.
func (b *Binder) At(task string, after bool) []Hook {
	if b == nil {
		return nil
	}
	var found []Hook
	for _, h := range b.hooks {
		if h.Task == task && h.After == after {
			found = append(found, h)
		}
	}
	return found
}

// Err joins all that could not be bound, whether or not the caller has looked at the error.
func (b *Binder) Err() error {
	if b == nil {
		return nil
	}
	return errors.Join(b.problems...)
}

// OnFailure are the handlers of failures, in the order in which they were bound.
func (b *Binder) OnFailure() []Hook { return b.At("", false) }

// refused is how many could not be bound.
func (b *Binder) refused() int { return len(b.problems) }

// Before has a handler run before a task. One that fails fails the task before it has started. undo, at most one, takes
// back what the handler did when the run is rolled back.
func Before[B, A any](b *Binder, t Task[B, A], run Handler[B], undo ...Handler[B]) error {
	return bind(b, t.Point(), false, run, undo)
}

// After has a handler run after a task, and before anything else does: the next task does not start unless it succeeds.
func After[B, A any](b *Binder, t Task[B, A], run Handler[A], undo ...Handler[A]) error {
	return bind(b, t.Point(), true, run, undo)
}

// OnFailure has a handler run once for each task that failed for good, and once when the run ends by a failure. C is the context with
// which the workflow begins: who knows what failed reads the rest from the log. Its own failure is recorded and changes nothing, and it
// is not undone.
func OnFailure[C any](b *Binder, run Handler[C]) error {
	if run == nil {
		return b.refuse(fmt.Errorf("binding %s to failures: the handler is nil", b.who()))
	}
	b.hooks = append(b.hooks, Hook{Name: b.name(""), Run: run})
	return nil
}

func bind[C any](b *Binder, p Point, after bool, run Handler[C], undo []Handler[C]) error {
	if err := b.check(p, run == nil, len(undo)); err != nil {
		return b.refuse(err)
	}
	h := Hook{Name: b.name(p.Name), Task: p.Name, After: after, Run: run}
	if len(undo) > 0 {
		h.Undo = undo[0]
	}
	b.hooks = append(b.hooks, h)
	return nil
}

func (b *Binder) refuse(err error) error {
	b.problems = append(b.problems, err)
	return err
}

func (b *Binder) who() string {
	if b.registrar == "" {
		return "a hook"
	}
	return "a hook of " + b.registrar
}

// name numbers the hooks of a registrar, and its handlers of failures apart from them: a name must be the same at each construction of the
// workflow, also by a program that has learned to handle failures since.
func (b *Binder) name(task string) string {
	registrar := b.registrar
	if registrar == "" {
		registrar = "hook"
	}
	n := 1
	for _, h := range b.hooks {
		if (h.Task == "") == (task == "") && strings.HasPrefix(h.Name, registrar+"-") {
			n++
		}
	}
	return fmt.Sprintf("%s-%d", registrar, n)
}

func (b *Binder) check(p Point, empty bool, undos int) error {
	i := slices.IndexFunc(b.points, func(known Point) bool { return known.Name == p.Name })
	who := b.who()
	switch {
	case i < 0:
		return fmt.Errorf("binding %s: there is no task %q in this workflow: its tasks are %s", who, p.Name, b.names())
	case b.points[i] != p:
		return fmt.Errorf("binding %s: %q is taken from another workflow, whose context is %s and %s: here they are %s and %s",
			who, p.Name, p.before, p.after, b.points[i].before, b.points[i].after)
	case empty:
		return fmt.Errorf("binding %s to %q: the handler is nil", who, p.Name)
	case undos > 1:
		return fmt.Errorf("binding %s to %q: there are %d inverses: give one", who, p.Name, undos)
	default:
		return nil
	}
}

func (b *Binder) names() string {
	names := make([]string, len(b.points))
	for i, p := range b.points {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// Bind has all registrars of a program bind their hooks, and the provider if it is one of them. What fails is a problem of the
// build.
func Bind[R interface{ Name() string }](registrars []R, provider any, points []Point, bind func(R, *Binder) error) (*Binder, []workflow.Problem) {
	b := NewBinder(points...)
	if r, ok := provider.(R); ok {
		registrars = append(registrars[:len(registrars):len(registrars)], r)
	}
	var problems []workflow.Problem
	for _, r := range registrars {
		known := b.refused()
		err := bind(r, b.As(r.Name()))
		if err != nil && b.refused() == known { // else Build tells it
			problems = append(problems, workflow.Problem{Field: "spec.workflow", Message: "hooks of " + r.Name() + ": " + err.Error()})
		}
	}
	return b, problems
}
