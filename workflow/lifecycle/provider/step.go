package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Step is one task of a workflow. A is the context before it, B the context after it, and O its
// output in the log.
type Step[A, B, O any] struct {
	// Task is the name of the step. Its kind, for policies, is the name in one word.
	Task hook.Task[A, B]
	// Timeout is the timeout of an attempt if neither the manifest nor the run's deadline sets one.
	Timeout time.Duration
	// Skip replaces Run if pre-upgrade found nothing to upgrade. The hooks and the undo are then
	// skipped too. A step without Skip always runs.
	Skip func(c *A, reason string) (O, error)
	// PointOfNoReturn means that nothing is rolled back once the step has started.
	PointOfNoReturn bool

	// Run observes, does the missing work, and waits until the result is in effect. Its output
	// contains references, never a secret.
	Run func(*A) (O, error)
	// Next returns the context after the step. It only combines its arguments.
	Next func(A, O) B
	// Undo reverts the work of all attempts. If it is nil, there is nothing to revert. out is nil if
	// no attempt ended.
	Undo func(c *A, out *O) error
}

// None is the output of a step that does not extend the context.
type None struct {
	Skipped string `json:"skipped,omitempty"`
}

// SkipError is returned by the Run of a step that has nothing to do. The step then succeeds.
type SkipError string

// Error returns the reason.
func (s SkipError) Error() string { return string(s) }

// Do returns a step that does not extend the context.
func Do[C any](name hook.Task[C, C], within time.Duration, run, undo func(*C) error) Step[C, C, None] {
	s := Step[C, C, None]{
		Task: name, Timeout: within,
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

// On returns a step whose run and undo get the API server of the Target's manager.
func On[C any](name hook.Task[C, C], within time.Duration, of func(*C) Target, run, undo func(*Context, access.ClusterRef) error) Step[C, C, None] {
	return Do(name, within,
		func(c *C) error { return run(of(c).Context, of(c).Manager) },
		func(c *C) error { return undo(of(c).Context, of(c).Manager) })
}

// NoOp returns a step that does nothing. Hooks before or after the whole workflow bind to it.
func NoOp[C any](name hook.Task[C, C]) Step[C, C, None] {
	return Do(name, 0, func(*C) error { return nil }, nil)
}

// checker is an output that may be incomplete, for example because an operator supplied it.
type checker interface{ Check() error }

type kind[A, B, O any] struct {
	step    Step[A, B, O]
	restore restore[A]
}

// ReadsInputs marks the kind as a task.InputReader: the context is restored from the inputs.
func (k *kind[A, B, O]) ReadsInputs() {}

// SkipReason returns why the step and its hooks have nothing to do, or "".
func (k *kind[A, B, O]) SkipReason(call *task.Call) string {
	if k.step.Skip == nil || decisionOf(call).UpgradeCluster {
		return ""
	}
	return notNeededReason
}

// Validate returns no problem, because the only input of a step is its context.
func (k *kind[A, B, O]) Validate(json.RawMessage) []workflow.Problem { return nil }

// Run restores the context from the log and runs the step.
func (k *kind[A, B, O]) Run(ctx context.Context, call *task.Call) (json.RawMessage, error) {
	ctx, cancel := k.withTimeout(ctx)
	defer cancel()
	c, err := k.restore(ctx, call)
	if err != nil {
		return nil, err
	}
	var out O
	if reason := k.SkipReason(call); reason != "" {
		out, err = k.step.Skip(&c, reason)
	} else {
		out, err = k.step.Run(&c)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Undo restores the context from the log and undoes the step.
func (k *kind[A, B, O]) Undo(ctx context.Context, call *task.Call) error {
	if k.step.Undo == nil || k.SkipReason(call) != "" {
		return nil
	}
	ctx, cancel := k.withTimeout(ctx)
	defer cancel()
	c, err := k.restore(ctx, withoutRecords(call))
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

func (k *kind[A, B, O]) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set || k.step.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, k.step.Timeout)
}

// withoutRecords returns a copy of the call that stores no records, because the log accepts none
// from an undo or a failure handler. If an undo performs task kinds, it finds their unfinished work
// only by their step keys.
func withoutRecords(call *task.Call) *task.Call {
	c := *call
	c.Record = func(context.Context, json.RawMessage, bool) error { return nil }
	return &c
}

func (k *kind[A, B, O]) isSilent() bool {
	var before A
	var out O
	_, same := any(before).(B)
	_, none := any(out).(None)
	return same || none
}

func (k *kind[A, B, O]) contextAfter(ctx context.Context, call *task.Call) (b B, err error) {
	a, err := k.restore(ctx, call)
	if err != nil {
		return b, err
	}
	var out O
	name := string(k.step.Task)
	if data := call.Inputs[name]; len(data) > 0 {
		if err := json.Unmarshal(data, &out); err != nil {
			return b, task.Final(fmt.Errorf("reading the output of task %s: %w", name, err))
		}
	} else if !k.isSilent() {
		return b, missingOutputError(call, name, "the task has no output")
	}
	if c, ok := any(out).(checker); ok {
		if err := c.Check(); err != nil {
			return b, missingOutputError(call, name, err.Error())
		}
	}
	return k.step.Next(a, out), nil
}

func missingOutputError(call *task.Call, name, why string) error {
	return task.Final(fmt.Errorf("the output of task %s is required, but %s: set it with `scutectl decide run %s -n %s --task %s --action succeed "+
		"--output '{...}' --reason ...`",
		name, why, call.Name, call.Namespace, name))
}
