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
	// in effect. It returns soon after ctx ends. The output is recorded, even with an error, and
	// passed to dependent tasks; it contains references, never a secret. The retry policy applies
	// to an error unless it is Final. A DecisionError makes the task wait for an operator.
	Run(ctx context.Context, c *Call) (output json.RawMessage, err error)

	// Undo reverts the work of all attempts, and waits until the result of the work is gone. It keeps
	// what existed before the run. If it also keeps the work, it returns a KeptError. It is
	// idempotent, and is called even if no attempt did anything.
	Undo(ctx context.Context, c *Call) error
}

// Verifier is a Kind that can verify whether the result of a task still exists.
type Verifier interface {
	// Verify is called on a resume for a succeeded task. A reason means that the task must run again.
	Verify(ctx context.Context, c *Call) (reason string, err error)
}

// Remover is a Kind that deletes objects that other tasks may have created. A resume does not
// create these objects again.
type Remover interface {
	// Removes reports whether a step that has begun may have deleted the object.
	Removes(c *Call, o Object) bool
}

// Object identifies an object in a call of Remover.Removes.
type Object struct{ Namespace, UID string }

// InputReader is a Kind that reads Call.Inputs. Other kinds do not get them, because collecting
// them visits all upstream tasks at each attempt.
type InputReader interface {
	ReadsInputs()
}

// Skipper is a Kind whose task may have nothing to do, depending on the output of an earlier task.
// In that case the hooks of the task are skipped, too.
type Skipper interface {
	// SkipReason returns why the task has nothing to do, or "". c contains the Inputs.
	SkipReason(c *Call) string
}

// Holder is a Kind that holds something during a run. The engine calls Undo at the end of every run
// to release it, whatever the outcome.
type Holder interface{ Holds() bool }

// Interactive is a Kind that can return a DecisionError, and so make its task wait for an operator.
type Interactive interface{ Interactive() bool }

// Releaser is a Kind whose task ends the hold of a Holder before the run ends.
type Releaser interface {
	// Releases returns the name of the Holder's task, or "" if the inputs do not contain it.
	Releases(with json.RawMessage) string
}

// Irreversible is a Kind that cannot undo its work for some inputs: its Undo then returns a KeptError.
type Irreversible interface {
	Irreversible(with json.RawMessage) bool
}

// Call is one attempt of one step.
type Call struct {
	// Run is the ID of the run in the log. Step is "" for the task's own step.
	Run, Task, Step string
	// Undoing is true if the call runs the undo step that the manifest specifies. It is false if the
	// call runs the Undo method of the step's kind.
	Undoing bool
	// Origin makes the keys of local runs in different logs differ; see RunKey.
	Origin  string
	Attempt int
	// Execution is the same for all attempts until the log records that one has succeeded or that the
	// step was undone. An attempt may find the result of an earlier one whose process crashed before
	// the result was stored.
	Execution int
	// Namespace and Name identify the WorkflowRun. In the daemon, the task has the permissions of
	// ServiceAccount.
	Namespace, Name, ServiceAccount string
	// With are the inputs, with the outputs of other tasks substituted.
	With json.RawMessage
	// Inputs are the outputs of all direct and indirect dependencies. They are set only for an
	// InputReader.
	Inputs map[string]json.RawMessage
	Output json.RawMessage
	// Undo is the record that Prepare stored in this attempt or an earlier one; nil if there is none.
	Undo json.RawMessage
	// Removed is set in a call of Verify. It reports whether a step of the run may have deleted the
	// object; nil means that none has.
	Removed func(o Object) bool
	Failure *Failure
	// Dir is the directory for files of this run (logs, diagnostics); "" if there is none.
	Dir string

	// Record stores undo in the log, and returns when undo is durable. A kind calls it before each
	// change. undo contains the change and the state before it. adopted means that a rollback keeps
	// everything, because it existed already.
	Record func(ctx context.Context, undo json.RawMessage, adopted bool) error
	// Progress records a sentence that describes what the attempt is waiting for. It does not block.
	Progress func(message string)
	// Yield declares that the attempt only polls from now on, so that other runs may use its slot. It
	// does not block. May be nil.
	Yield func()
	// Reacquire waits until the attempt has its slot again after Yield, or until ctx ends. May be nil.
	Reacquire func(ctx context.Context) error
	Logger    *slog.Logger
}

// Failure describes to a failure handler what failed.
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

// ReacquireSlot calls Reacquire if it is set. After a wait, an attempt must call it before it makes
// more than a few requests.
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

// FinalError is an error that another attempt would also return.
type FinalError struct{ Err error }

// Final wraps err in a FinalError.
func Final(err error) error { return &FinalError{err} }

// Error returns the message of Err.
func (e *FinalError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FinalError) Unwrap() error { return e.Err }

// KeptError means that a rollback keeps the work of a step, because it cannot be undone.
type KeptError struct{ Reason string }

// Error returns Reason.
func (k *KeptError) Error() string { return k.Reason }

// DecisionError means that an operator must decide how the task continues.
type DecisionError struct{ Reason string }

// Error returns Reason.
func (d *DecisionError) Error() string { return d.Reason }

// IsFinal reports whether an error means that no other attempt can succeed.
func IsFinal(err error) bool {
	var final *FinalError
	return errors.As(err, &final) || errors.Is(err, guard.ErrDenied)
}

// Kinds are the task kinds that a process has, by name.
type Kinds map[string]Kind

// NamedWorkflow is a named workflow constructed from parameters. The same parameters must result in
// the same workflow.
type NamedWorkflow struct {
	Tasks []v1alpha1.TaskSpec
	// OnFailure are the workflow's failure handlers, in addition to those of the run.
	OnFailure []v1alpha1.HookSpec
	// Diagnose are the inputs of a Diagnose handler that collects the objects of the tasks; nil means
	// no handler.
	Diagnose json.RawMessage
	// Kinds are kinds that only the steps of this workflow can use.
	Kinds Kinds
	// Read is called before the run begins. It tries to read what the tasks of the workflow will read,
	// and returns all problems. An error means that a cluster cannot be read now. May be nil.
	Read func(ctx context.Context, c *Call) ([]workflow.Problem, error)
}

// Recorded returns the record that the attempts so far have stored, or the zero value.
func Recorded[R any](c *Call) (record R, err error) {
	if len(c.Undo) == 0 {
		return record, nil
	}
	if err := json.Unmarshal(c.Undo, &record); err != nil {
		return record, Final(fmt.Errorf("reading the earlier record: %w", err))
	}
	return record, nil
}
