package sequence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/task"
)

// Step is one task of a workflow: A is the context before it, B the one after it, O what it puts into the log.
type Step[A, B, O any] struct {
	// Task is its name; Kind names it in policies, and is unique in the workflow.
	Task hook.Task[A, B]
	Kind string
	// Within bounds an attempt that neither the manifest nor its deadline bounds.
	Within time.Duration
	// Silent: the step adds nothing to the context, whatever its output.
	Silent bool
	// Skips returns why the step has nothing to do, as an earlier one has found: the hooks of the step are skipped then. Empty, or a nil Skips: it
	// has something to do.
	Skips func(*task.Call) string
	// PointOfNoReturn: once it has started nothing is rolled back.
	PointOfNoReturn bool

	// Run observes, does what is missing, and waits until it has taken hold. What it returns is the task's output: it
	// holds references, never a secret.
	Run func(*A) (O, error)
	// Next is the context after the step. It only puts together what it is given.
	Next func(A, O) B
	// Undo takes back what all attempts did. out is nil if none ended. A nil Undo: there is nothing to undo.
	Undo func(c *A, out *O) error
}

// None is the output of a step that adds nothing to the context.
type None struct {
	// Skipped says why the step had nothing to do; empty if it did something.
	Skipped string `json:"skipped,omitempty"`
}

// SkipError is returned by a step that has nothing to do. It says why, and the step succeeds.
type SkipError string

// Error returns the reason.
func (s SkipError) Error() string { return string(s) }

// Do is a step that adds nothing to the context.
func Do[C any](name hook.Task[C, C], kind string, within time.Duration, run, undo func(*C) error) Step[C, C, None] {
	s := Step[C, C, None]{
		Task: name, Kind: kind, Within: within,
		Run: func(c *C) (None, error) {
			err, skip := run(c), SkipError("")
			if errors.As(err, &skip) {
				err = nil
			}
			return None{Skipped: string(skip)}, err
		},
		Next: func(c C, _ None) C { return c },
	}
	if undo != nil {
		s.Undo = func(c *C, _ *None) error { return undo(c) }
	}
	return s
}

// Place is a step that does nothing: it is the place for hooks before or after the workflow.
func Place[C any](name hook.Task[C, C], kind string) Step[C, C, None] {
	return Do(name, kind, 0, func(*C) error { return nil }, nil)
}

// Checker is an output that can tell what is missing in it, for example in one that an operator gave by hand.
type Checker interface{ Check() error }

// kind is the step as the engine sees it.
type kind[A, B, O any] struct {
	step    Step[A, B, O]
	restore restore[A]
}

// ReadsInputs says that the context is restored from them.
func (k *kind[A, B, O]) ReadsInputs() {}

// Skips returns why the step and its hooks have nothing to do.
func (k *kind[A, B, O]) Skips(call *task.Call) string {
	if k.step.Skips == nil {
		return ""
	}
	return k.step.Skips(call)
}

// Validate has nothing to do: a step has no inputs but its context.
func (k *kind[A, B, O]) Validate(json.RawMessage) []workflow.Problem { return nil }

// Run restores the context from the log and runs the step.
func (k *kind[A, B, O]) Run(ctx context.Context, call *task.Call) (json.RawMessage, error) {
	ctx, cancel := k.bound(ctx)
	defer cancel()
	c, err := k.restore(ctx, call)
	if err != nil {
		return nil, err
	}
	out, err := k.step.Run(&c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Undo restores the context from the log and undoes the step.
func (k *kind[A, B, O]) Undo(ctx context.Context, call *task.Call) error {
	if k.step.Undo == nil {
		return nil
	}
	ctx, cancel := k.bound(ctx)
	defer cancel()
	c, err := k.restore(ctx, unrecorded(call))
	if err != nil {
		return err
	}
	var out *O
	if len(call.Output) > 0 {
		out = new(O)
		if err := json.Unmarshal(call.Output, out); err != nil {
			return task.Final(fmt.Errorf("reading the output of %s: %w", k.step.Task, err))
		}
	}
	return k.step.Undo(&c, out)
}

func (k *kind[A, B, O]) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set || k.step.Within == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, k.step.Within)
}

// unrecorded is a call whose records stay in this attempt: the log takes none from an undo, and none from a handler of
// failures. Which is why a step that performs kinds of tasks to undo another, such as a move back, relies on their keys alone to find
// its own half-done work.
func unrecorded(call *task.Call) *task.Call {
	c := *call
	c.Record = func(context.Context, json.RawMessage, bool) error { return nil }
	return &c
}

// silent says that the step adds nothing to the context.
func (k *kind[A, B, O]) silent() bool {
	var out O
	_, none := any(out).(None)
	return none || k.step.Silent
}

// after is the context behind the step, from the log.
func (k *kind[A, B, O]) after(ctx context.Context, call *task.Call) (b B, err error) {
	a, err := k.restore(ctx, call)
	if err != nil {
		return b, err
	}
	var out O
	name := string(k.step.Task)
	switch data, found := call.Inputs[name]; {
	case found && len(data) > 0:
		if err := json.Unmarshal(data, &out); err != nil {
			return b, task.Final(fmt.Errorf("reading the output of task %s: %w", name, err))
		}
	default:
		if !k.silent() {
			return b, missing(call, name, "it has none")
		}
	}
	if c, ok := any(out).(Checker); ok {
		if err := c.Check(); err != nil {
			return b, missing(call, name, err.Error())
		}
	}
	return k.step.Next(a, out), nil
}

// missing happens when an operator had a failure ignored, or gave an output by hand.
func missing(call *task.Call, name, why string) error {
	return task.Final(fmt.Errorf("the output of task %s is needed, and %s: give it with `scutectl decide run %s -n %s --task %s --action succeed --output '{...}' --reason ...`",
		name, why, call.Name, call.Namespace, name))
}
