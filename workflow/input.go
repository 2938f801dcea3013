package workflow

import "encoding/json"

// Input is an input of Decide: a tick, the outcome of an effect, or an operator's command.
type Input interface{ input() }

// Inputs from the driver of a run. Decide ignores the outcome of an effect that is not in flight.
type (
	// Tick requests the events that follow from the state and the time alone. Parallel limits the
	// number of effects in flight.
	Tick struct{ Parallel int }
	// ActDone means that an attempt at a step succeeded.
	ActDone struct {
		Task, Step string
		Attempt    int
		Output     json.RawMessage
	}
	// ActFailed means that an attempt failed. Final means that a retry would fail in the same way.
	ActFailed struct {
		Task, Step string
		Attempt    int
		Cause      Cause
		Message    string
		Final      bool
		// Output is the output that the attempt recorded before it failed.
		Output json.RawMessage
	}
	// ActAwaitsOperator means that the step needs an operator's decision.
	ActAwaitsOperator struct {
		Task, Step string
		Attempt    int
		Message    string
	}
	// ActRecorded means that an attempt is about to change something. Undo is the state before.
	ActRecorded struct {
		Task, Step string
		Attempt    int
		Undo       json.RawMessage
		Adopted    bool
	}
	// ActProgressed reports what an attempt is waiting for.
	ActProgressed struct {
		Task, Step string
		Attempt    int
		Message    string
	}
	// UndoDone means that a step was undone or, if KeptReason is set, that its effect was kept for
	// that reason.
	UndoDone struct {
		Task, Step string
		KeptReason string
	}
	// UndoErrored means that an attempt to undo a step failed.
	UndoErrored struct {
		Task, Step string
		Message    string
		Final      bool
	}
	// HandlerDone means that a handler has ended. Error is "" if it succeeded.
	HandlerDone struct {
		Handler, Task string
		Error         string
		Output        json.RawMessage
	}
	// VerifyDone carries the tasks that no longer pass their check.
	VerifyDone struct{ Gone []Gone }
)

// Commands from an operator. An error from Decide names the commands that are possible instead.
type (
	// PauseRun stops further effects from starting.
	PauseRun struct{ Reason string }
	// ResumeRun resumes a paused or aborted run. With ProcessDied, it also resumes a run that seems to
	// be running.
	ResumeRun struct {
		Reason      string
		ProcessDied bool
	}
	// AbortRun cancels the effects in flight and releases holds. The run can be resumed. If Rollback
	// is set, the steps of the run are also undone, even if the run was aborted before.
	AbortRun struct {
		Reason   string
		Rollback bool
	}
	// HoldTask prevents a task, and the tasks that depend on it, from starting.
	HoldTask struct{ Task, Reason string }
	// ReleaseTask releases a held task.
	ReleaseTask struct{ Task, Reason string }
	// Decision answers the question of a task that waits for an operator.
	Decision struct {
		Task string
		// Question is the number of the question that is answered, as in TaskStatus; 0 means the current
		// question.
		Question int
		Action   Action
		Output   json.RawMessage
		With     json.RawMessage
		Reason   string
	}
	// Migrate continues the run with another definition.
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
