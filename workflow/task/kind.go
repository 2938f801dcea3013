package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"scute.dev/kube/guard"
	"scute.dev/workflow"
)

// Kind is what a task can be. Its methods are called from many goroutines.
type Kind interface {
	// Validate checks the inputs as they stand in the manifest, without looking at the world. The Field of a problem is
	// relative to `with`. A string may still hold ${tasks.NAME.output.PATH}.
	Validate(with json.RawMessage) []workflow.Problem

	// Run performs one attempt: it observes what is there, does what is missing, and waits until it has taken hold. The
	// output is recorded in the log, beside an error as well, and given to the tasks that need this one; it holds
	// references, never a secret. Run ends soon after ctx does. An error is retried as the task's retry says, unless it is Final; a DecisionError leaves the
	// task to an operator.
	Run(ctx context.Context, c *Call) (output json.RawMessage, err error)

	// Undo takes back what all attempts of this run did, and waits until it is gone. What was there before stays. It is
	// idempotent, and it is called as well when an attempt did nothing yet. A KeptError leaves what they did.
	Undo(ctx context.Context, c *Call) error
}

// Verifier is a Kind that can tell whether what a task did still holds.
type Verifier interface {
	// Verify is asked on a resume about a task that has succeeded. A reason means that it must run again.
	Verify(ctx context.Context, c *Call) (reason string, err error)
}

// Remover is a Kind that takes away objects that other tasks may have made. They are not made again on a resume.
type Remover interface {
	// Removes says whether a step that has begun may be why an object is gone. c has the inputs and the record of the step.
	Removes(c *Call, o Object) bool
}

// Object is one that a Remover is asked about.
type Object struct{ Namespace, UID string }

// Reader is a Kind that reads Call.Inputs, or has them read. To gather them takes a walk over all that comes before the task,
// for each attempt: other kinds do not get them.
type Reader interface {
	ReadsInputs()
}

// Skipper is a Kind whose task may have nothing to do, as an earlier task has found. The hooks of the task are skipped with it.
type Skipper interface {
	// Skips returns why; empty if the task has something to do. c has the Inputs.
	Skips(c *Call) string
}

// Holder is a Kind that holds something for the time of a run, and gives it back (by Undo) however the run ends.
type Holder interface{ Holds() bool }

// Asker is a Kind that waits for an operator, with a DecisionError.
type Asker interface{ Asks() bool }

// Releaser is a Kind that ends what a Holder holds before the run does.
type Releaser interface {
	// Releases names the task whose hold is ended; "" if the inputs do not say.
	Releases(with json.RawMessage) string
}

// Keeper is a Kind that has no inverse for some inputs: its Undo is a KeptError then.
type Keeper interface {
	Keeps(with json.RawMessage) bool
}

// Call is one attempt of one step.
type Call struct {
	// Run is the run's id in the log; Task and Step say which step it is (Step is "" for the task's own).
	Run, Task, Step string
	// Undoing says that this call, of a kind that the manifest gives, takes the step back.
	Undoing bool
	// Origin tells the keys of a local run from those of runs of other logs; see RunKey.
	Origin string
	// OldKeys: the run was started with keys that may be those of other steps; see Key.
	OldKeys bool
	// Attempt counts from 1.
	Attempt int
	// Execution is the same for all attempts until one has succeeded in the log, or the step was undone: what an attempt of the
	// same execution has left behind may be the outcome that its death kept from the log.
	Execution int
	// Namespace and Name of the WorkflowRun; ServiceAccount whose permissions the task has in the daemon.
	Namespace, Name, ServiceAccount string
	// With are the inputs, with outputs of other tasks filled in.
	With json.RawMessage
	// Inputs are the outputs of the tasks that this one depends on, directly or not, by task. Only a Reader gets them.
	Inputs map[string]json.RawMessage
	// Output that this very step recorded, in Undo and Verify.
	Output json.RawMessage
	// Undo is what Prepare has recorded, in this attempt or an earlier one; nil if nothing.
	Undo json.RawMessage
	// Removed says, in Verify, that a step of the run may be why an object is gone. nil: none is.
	Removed func(o Object) bool
	// Failure is set for a handler of the error channel.
	Failure *Failure
	// Dir is a folder of this run for what is written to disk (logs, diagnostics); "" if there is none.
	Dir string

	// Record stores undo in the log and returns when it is durable. Before it acts a kind records what it is going to
	// change and how that was before. adopted says that all of it was there already: a rollback leaves the task alone.
	Record func(ctx context.Context, undo json.RawMessage, adopted bool) error
	// Progress says in a sentence what an attempt waits for. It does not block.
	Progress func(message string)
	// Waits says that from now on the attempt does little more than look whether something has happened: others may work in its
	// place. It does not block. May be nil.
	Waits func()
	// Works waits until an attempt that has waited may work again, or ctx ends, which is that of the attempt or of a part of it. May be nil.
	Works  func(ctx context.Context) error
	Logger *slog.Logger
}

// Failure is what a handler of the error channel is told.
type Failure struct {
	Task    string `json:"task"` // "" for the run as a whole
	Kind    string `json:"kind,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Cause   string `json:"cause"`
	Message string `json:"message"`
}

// OnlyWaits tells Waits.
func (c *Call) OnlyWaits() {
	if c.Waits != nil {
		c.Waits()
	}
}

// WorksAgain asks Works. An attempt needs it only where more than a few requests follow a wait.
func (c *Call) WorksAgain(ctx context.Context) error {
	if c.Works == nil {
		return nil
	}
	return c.Works(ctx)
}

// Prepare marshals undo and stores it; see Record.
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

// Final marks an error as one that another attempt cannot fix.
func Final(err error) error { return &FinalError{err} }

// Error is the cause's.
func (e *FinalError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *FinalError) Unwrap() error { return e.Err }

// KeptError says that a rollback leaves what a step did, because nothing says how to take it back.
type KeptError struct{ Why string }

// Error says why.
func (k *KeptError) Error() string { return k.Why }

// DecisionError says that an operator has to decide what follows for the task.
type DecisionError struct{ Why string }

// Error says why.
func (d *DecisionError) Error() string { return d.Why }

// IsFinal says whether another attempt cannot succeed.
func IsFinal(err error) bool {
	var final *FinalError
	return errors.As(err, &final) || errors.Is(err, guard.ErrDenied)
}

// Kinds are the kinds that a process knows, by name.
type Kinds map[string]Kind
