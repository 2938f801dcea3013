package workflow

import "encoding/json"

// Input is the input of a decision: a tick of the clock, the result of an effect, or an operator's command.
type Input interface{ input() }

// Inputs from the driver of a run. Decide ignores an outcome that is not about an effect in flight.
type (
	// Tick requests the events that follow from the state and the time. Parallel bounds the effects in flight.
	Tick struct{ Parallel int }
	// ActDone means that an attempt at a step succeeded.
	ActDone struct {
		Task, Step string
		Attempt    int
		Output     json.RawMessage
	}
	// ActFailed means that an attempt failed. Final is set if another attempt would fail, too.
	ActFailed struct {
		Task, Step string
		Attempt    int
		Cause      Cause
		Message    string
		Final      bool
		// Output is what the attempt recorded before it failed.
		Output json.RawMessage
	}
	// ActAwaitsOperator means that an operator has to decide about the step.
	ActAwaitsOperator struct {
		Task, Step string
		Attempt    int
		Message    string
	}
	// ActRecorded means that an attempt is about to change something.
	ActRecorded struct {
		Task, Step string
		Attempt    int
		Undo       json.RawMessage
		Adopted    bool
	}
	// ActProgressed means that an attempt waits for something.
	ActProgressed struct {
		Task, Step string
		Attempt    int
		Message    string
	}
	// UndoDone means that a step is undone. Kept is why its effect was kept instead.
	UndoDone struct {
		Task, Step string
		KeptReason string
	}
	// UndoErrored means that an attempt to undo a step failed.
	UndoErrored struct {
		Task, Step string
		Attempt    int
		Message    string
		Final      bool
	}
	// HandlerDone means that a handler has ended. Error is the result.
	HandlerDone struct {
		Handler, Task string
		Error         string
		Output        json.RawMessage
	}
	// VerifyDone means that the steps that had succeeded were checked.
	VerifyDone struct{ Gone []Gone }
)

// Commands from an operator. Decide refuses a command that is not possible, with an error that
// names the possible commands.
type (
	// PauseRun pauses the run: no further effect starts.
	PauseRun struct{ Reason string }
	// ResumeRun resumes a paused or aborted run. ProcessDied means that the process that drove the
	// run has died, so that a run that seems to be running is resumed, too.
	ResumeRun struct {
		Reason      string
		ProcessDied bool
	}
	// AbortRun aborts a run: effects in flight are cancelled, and holds are released. The run can
	// be resumed. AbortRun has no effect on a run that is ending. With Rollback the steps of the
	// run are undone, even if the run was aborted before.
	AbortRun struct {
		Reason   string
		Rollback bool
	}
	// HoldTask prevents a task, and the tasks that depend on it, from starting.
	HoldTask struct{ Task, Reason string }
	// ReleaseTask releases a held task.
	ReleaseTask struct{ Task, Reason string }
	// Decision is about a task that waits for a decision. Attempt is the attempt that is decided
	// about; 0 is the latest.
	Decision struct {
		Task string
		// Question is the number of the question that is answered, as in TaskStatus; 0 is the current one.
		Question int
		Action   Action
		Output   json.RawMessage
		With     json.RawMessage
		Reason   string
	}
	// Migrate continues with another definition.
	Migrate struct {
		To   *Definition
		Plan []Change
	}
)

func (Tick) input()              {}
func (ActDone) input()           {}
func (ActFailed) input()         {}
func (ActAwaitsOperator) input() {}
func (ActRecorded) input()       {}
func (ActProgressed) input()     {}
func (UndoDone) input()          {}
func (UndoErrored) input()       {}
func (HandlerDone) input()       {}
func (VerifyDone) input()        {}
func (PauseRun) input()          {}
func (ResumeRun) input()         {}
func (AbortRun) input()          {}
func (HoldTask) input()          {}
func (ReleaseTask) input()       {}
func (Decision) input()          {}
func (Migrate) input()           {}
