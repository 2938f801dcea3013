package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/guard"
	"scute.dev/workflow"
)

// Kind is a kind of task. Its methods are called concurrently.
type Kind interface {
	// Validate checks the inputs of the manifest without any request. The Field of a problem is
	// relative to `with`. A string may contain ${tasks.NAME.output.PATH}.
	Validate(with json.RawMessage) []workflow.Problem

	// Run performs one attempt: it observes, does the missing work, and waits until the result is
	// in effect. The output is recorded in the log, even with an error, and passed to dependent
	// tasks; it contains references, never a secret. Run returns soon after ctx ends. The task is
	// retried after an error according to its retry policy, unless the error is Final. A
	// DecisionError makes the task wait for an operator.
	Run(ctx context.Context, c *Call) (output json.RawMessage, err error)

	// Undo reverts the work of all attempts of this run, and waits until it is gone. It keeps
	// everything that existed before. It is idempotent, and it is also called if no attempt did
	// anything. It returns a KeptError if it keeps the work.
	Undo(ctx context.Context, c *Call) error
}

// Verifier is a Kind that can verify whether the result of a task still exists.
type Verifier interface {
	// Verify is called on a resume for a task that has succeeded. A reason means that the task must run again.
	Verify(ctx context.Context, c *Call) (reason string, err error)
}

// Remover is a Kind that deletes objects that other tasks may have created. A resume does not
// create these objects again.
type Remover interface {
	// Removes reports whether a step that has begun may have deleted an object. c contains the
	// inputs and the record of the step.
	Removes(c *Call, o Object) bool
}

// Object identifies an object for a Remover.
type Object struct{ Namespace, UID string }

// InputReader is a Kind that reads Call.Inputs. Other kinds do not get them, because collecting
// them visits all tasks before the task for each attempt.
type InputReader interface {
	ReadsInputs()
}

// Skipper is a Kind whose task may have nothing to do, depending on the output of an earlier task.
// The hooks of the task are skipped with it.
type Skipper interface {
	// SkipReason returns why the task has nothing to do, or "" if it has something to do. c
	// contains the Inputs.
	SkipReason(c *Call) string
}

// Holder is a Kind that holds something during a run, and releases it (with Undo) no matter how the run ends.
type Holder interface{ Holds() bool }

// Interactive is a Kind that waits for an operator by returning a DecisionError.
type Interactive interface{ Interactive() bool }

// Releaser is a Kind that makes a Holder release what it holds before the run ends.
type Releaser interface {
	// Releases returns the name of the Holder's task, or "" if the inputs do not contain it.
	Releases(with json.RawMessage) string
}

// Irreversible is a Kind that cannot undo its work for some inputs: then its Undo returns a KeptError.
type Irreversible interface {
	Irreversible(with json.RawMessage) bool
}

// Call is one attempt of one step.
type Call struct {
	// Run is the ID of the run in the log. Task and Step identify the step; Step is "" for the task's own step.
	Run, Task, Step string
	// Undoing is true if the call undoes the step with a kind that the manifest specifies.
	Undoing bool
	// Origin distinguishes the keys of a local run from the keys of runs in other logs; see RunKey.
	Origin string
	// Attempt counts from 1.
	Attempt int
	// Execution is the same number for all attempts until one has succeeded in the log or the step
	// was undone. If an earlier attempt crashed before its result was stored, an attempt with the
	// same Execution may find that result.
	Execution int
	// Namespace and Name identify the WorkflowRun. The task has the permissions of ServiceAccount in the daemon.
	Namespace, Name, ServiceAccount string
	// With are the inputs, with the outputs of other tasks filled in.
	With json.RawMessage
	// Inputs are the outputs of all tasks on which this task depends, directly or indirectly, by
	// task. Only an InputReader gets them.
	Inputs map[string]json.RawMessage
	// Output is the recorded output of this step, in Undo and Verify.
	Output json.RawMessage
	// Undo is the record that Prepare stored, in this attempt or an earlier one; nil if there is none.
	Undo json.RawMessage
	// Removed reports, in Verify, whether a step of the run may have deleted an object. nil means that no step did.
	Removed func(o Object) bool
	// Failure is set for a failure handler.
	Failure *Failure
	// Dir is the folder for files of this run (logs, diagnostics); "" if there is none.
	Dir string

	// Record stores undo in the log and returns when it is durable. Before a kind changes
	// something, it records what it will change and the state before. adopted means that everything
	// existed already: a rollback keeps it.
	Record func(ctx context.Context, undo json.RawMessage, adopted bool) error
	// Progress reports in a sentence what an attempt waits for. It does not block.
	Progress func(message string)
	// Yield reports that the attempt only polls from now on, so that other runs may use its slot.
	// It does not block. May be nil.
	Yield func()
	// Reacquire waits until an attempt that has waited may work again, or until ctx ends, the
	// context of the attempt or of a part of it. May be nil.
	Reacquire func(ctx context.Context) error
	Logger    *slog.Logger
}

// Failure is the failure that a handler handles.
type Failure struct {
	Task    string `json:"task"` // "" for the run as a whole
	Kind    string `json:"kind,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Cause   string `json:"cause"`
	Message string `json:"message"`
}

// YieldSlot calls Yield if it is set.
func (c *Call) YieldSlot() {
	if c.Yield != nil {
		c.Yield()
	}
}

// ReacquireSlot calls Reacquire if it is set. An attempt needs it only if it makes more than a few
// requests after a wait.
func (c *Call) ReacquireSlot(ctx context.Context) error {
	if c.Reacquire == nil {
		return nil
	}
	return c.Reacquire(ctx)
}

// Prepare marshals and records undo; see Record.
func (c *Call) Prepare(ctx context.Context, undo any, adopted bool) error {
	data, err := json.Marshal(undo)
	if err != nil {
		return fmt.Errorf("recording how to undo: %w", err)
	}
	if err := c.Record(ctx, data, adopted); err != nil {
		return err
	}
	c.Undo = data
	return nil
}

// FinalError is an error that another attempt cannot fix.
type FinalError struct{ Err error }

// Final marks an error that another attempt cannot fix.
func Final(err error) error { return &FinalError{err} }

// Error returns the message of Err.
func (e *FinalError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FinalError) Unwrap() error { return e.Err }

// KeptError is returned if a rollback keeps the work of a step, because there is no way to undo it.
type KeptError struct{ Reason string }

// Error returns Reason.
func (k *KeptError) Error() string { return k.Reason }

// DecisionError is returned if an operator has to decide what follows for the task.
type DecisionError struct{ Reason string }

// Error returns Reason.
func (d *DecisionError) Error() string { return d.Reason }

// IsFinal reports whether no other attempt can succeed.
func IsFinal(err error) bool {
	var final *FinalError
	return errors.As(err, &final) || errors.Is(err, guard.ErrDenied)
}

// Kinds are the kinds of a process by name.
type Kinds map[string]Kind

// NamedWorkflow is a named workflow, constructed from parameters. The same parameters result in the same workflow.
type NamedWorkflow struct {
	Tasks []v1alpha1.TaskSpec
	// OnFailure are its failure handlers, in addition to the failure handlers of the run.
	OnFailure []v1alpha1.HookSpec
	// Diagnose are the inputs of a Diagnose handler for the objects that its tasks work on; nil: none.
	Diagnose json.RawMessage
	// Kinds are the kinds that only its steps can use.
	Kinds Kinds
	// Read tries to read the files and objects that the tasks of a run will read, before the run
	// begins, and returns all problems. It returns an error if a cluster cannot be read, because
	// the objects may exist there later. If Read is nil, nothing is checked.
	Read func(ctx context.Context, c *Call) ([]workflow.Problem, error)
}

// Recorded returns the record of the attempts so far; the zero value if there is none.
func Recorded[R any](c *Call) (record R, err error) {
	if len(c.Undo) == 0 {
		return record, nil
	}
	if err := json.Unmarshal(c.Undo, &record); err != nil {
		return record, Final(fmt.Errorf("reading the earlier record: %w", err))
	}
	return record, nil
}
