package workflow

import (
	"encoding/json"
	"time"

	"scute.dev/api/v1alpha1"
)

// Event is an event about a run.
type Event interface{ event() }

// Cause is the cause of a failure.
type Cause string

// The causes.
const (
	CauseError     Cause = "error"
	CauseTimeout   Cause = "timeout"   // of one attempt, or of all of them
	CauseLost      Cause = "lost"      // its process ended, and the outcome is unknown
	CauseCancelled Cause = "cancelled" // the run stopped it
	CauseDeadline  Cause = "deadline"  // of the run
	CauseOperator  Cause = "operator"
)

// PauseReason is why a task waits for an operator.
type PauseReason string

// The reasons.
const (
	ReasonFailed   PauseReason = "failed"   // it failed for good, and its policy is Pause
	ReasonApproval PauseReason = "approval" // its kind asks for a decision
	ReasonUnknown  PauseReason = "unknown"  // it may run only once, and the result is unknown
	ReasonHeld     PauseReason = "held"     // an operator held it
)

// Action is an operator's decision about a task.
type Action string

// The decisions.
const (
	ActRetry          Action = "retry"
	ActIgnore         Action = "ignore"
	ActIgnoreChildren Action = "ignore-children"
	ActSucceed        Action = "succeed"
	ActRollback       Action = "rollback"
	ActAbort          Action = "abort"
	ActRetryUndo      Action = "retry-undo"
	ActMarkUndone     Action = "mark-undone"
	ActAbandon        Action = "abandon"
)

// StepKeys is the form of the idempotency keys: they differ by step, and between the step and its undo.
const StepKeys = 1

// Events about a run.
type (
	// Defined has a part of a definition's tasks. The parts 0 to Of-1 precede the Started or Migrated that uses them.
	Defined struct {
		Part  int    `json:"part"`
		Of    int    `json:"of"`
		Tasks []Task `json:"tasks"`
	}
	// Started starts a run with a definition.
	Started struct {
		Header
		Hash     string    `json:"hash"`
		Deadline time.Time `json:"deadlineAt,omitzero"`
		// KeyForm is the form of the idempotency keys, which is StepKeys.
		KeyForm int `json:"keyForm,omitempty"`
		// Origin is a part of the keys of a local run: the ID of the log in which it was started.
		// The IDs of local runs are counted from 1 in each log, so they are not unique.
		Origin string `json:"origin,omitempty"`
	}
	// Claimed has the process that drives the run from now on.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// Stranded means that the process with the claim does not know a kind that the run needs.
	Stranded struct {
		Reason string `json:"reason"`
	}
	// Paused means that no further effect starts. Effects in flight end.
	Paused struct {
		Reason string `json:"reason,omitempty"`
	}
	// Resumed resumes a run that was paused, aborted, or whose process died.
	Resumed struct {
		Reason string `json:"reason,omitempty"`
		// Shift is how long the clocks were stopped.
		Shift Duration `json:"shift,omitzero"`
		// Rerun are the tasks that run again: failed and interrupted tasks, tasks that always run
		// again, tasks whose hold is needed again, and tasks that release it.
		Rerun []string `json:"rerun,omitempty"`
	}
	// Verified means that the steps that succeeded before a resume were checked. Gone are the tasks
	// that must run again.
	Verified struct {
		Gone []Gone `json:"gone,omitempty"`
		// Rerun are the tasks with released holds that the tasks in Gone need, and the tasks that release them.
		Rerun []string `json:"rerun,omitempty"`
	}
	// Aborted means that no further effect starts, and effects in flight are cancelled.
	Aborted struct {
		Task    string `json:"task,omitempty"`
		Cause   Cause  `json:"cause"`
		Message string `json:"message,omitempty"`
	}
	// RollbackStarted means that effects in flight are cancelled, and then all steps of the run are undone.
	RollbackStarted struct {
		Task    string `json:"task,omitempty"`
		Cause   Cause  `json:"cause"`
		Message string `json:"message,omitempty"`
	}
	// Ended means that the run has ended. Only an Aborted run can be resumed.
	Ended struct {
		Phase   v1alpha1.RunPhase `json:"phase"`
		Message string            `json:"message,omitempty"`
	}
	// Migrated means that the run continues with another definition, whose parts precede this event.
	Migrated struct {
		Header
		Hash string   `json:"hash"`
		Plan []Change `json:"plan"`
	}
)

// Gone is a task whose result no longer exists.
type Gone struct {
	Task   string `json:"task"`
	Reason string `json:"reason"`
}

// Events about a task.
type (
	// TaskStarted means that an attempt at a step starts. It times out at TimeoutAt, and all attempts at TotalAt.
	TaskStarted struct {
		Task      string    `json:"task"`
		Step      string    `json:"step,omitempty"`
		Attempt   int       `json:"attempt"`
		TimeoutAt time.Time `json:"timeoutAt,omitzero"`
		TotalAt   time.Time `json:"totalAt,omitzero"`
	}
	// UndoRecorded contains the record of what an attempt is about to change, and of the state
	// before the change.
	UndoRecorded struct {
		Task    string          `json:"task"`
		Step    string          `json:"step,omitempty"`
		Undo    json.RawMessage `json:"undo,omitempty"`
		Adopted bool            `json:"adopted,omitempty"`
	}
	// Progressed contains a sentence about what an attempt waits for.
	Progressed struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Message string `json:"message"`
	}
	// AttemptFailed means that another attempt follows at RetryAt.
	AttemptFailed struct {
		Task    string    `json:"task"`
		Step    string    `json:"step,omitempty"`
		Attempt int       `json:"attempt"`
		Cause   Cause     `json:"cause"`
		Message string    `json:"message,omitempty"`
		RetryAt time.Time `json:"retryAt"`
		// Output is what the attempt recorded before it failed.
		Output json.RawMessage `json:"output,omitempty"`
	}
	// StepSucceeded means that the next step of the task follows.
	StepSucceeded struct {
		Task   string          `json:"task"`
		Step   string          `json:"step,omitempty"`
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskSucceeded means that the last step of the task has succeeded.
	TaskSucceeded struct {
		Task   string          `json:"task"`
		Step   string          `json:"step,omitempty"`
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskFailed means that the task has failed for good.
	TaskFailed struct {
		Task    string                 `json:"task"`
		Step    string                 `json:"step,omitempty"`
		Attempt int                    `json:"attempt"`
		Cause   Cause                  `json:"cause"`
		Message string                 `json:"message,omitempty"`
		Verdict v1alpha1.Verdict       `json:"verdict"`
		Policy  v1alpha1.FailurePolicy `json:"policy"`
		// SkipsChildren is set if the policy or a decision, and not the graph, skips the tasks that
		// need this task's success.
		SkipsChildren bool `json:"skipsChildren,omitempty"`
		// Output is what the attempt recorded before it failed.
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskPaused means that the task waits for an operator.
	TaskPaused struct {
		Task    string      `json:"task"`
		Step    string      `json:"step,omitempty"`
		Reason  PauseReason `json:"reason"`
		Cause   Cause       `json:"cause,omitempty"`
		Message string      `json:"message,omitempty"`
		// Output is what the attempt recorded before it failed.
		Output json.RawMessage `json:"output,omitempty"`
		// ClocksRun is set if the task waits for an approval; the clocks run meanwhile. The task
		// fails at ExpiresAt; zero if never.
		ClocksRun bool      `json:"clocksRun,omitempty"`
		ExpiresAt time.Time `json:"expiresAt,omitzero"`
	}
	// TaskSkipped means that the task will not run. Planned is set if the graph plans this, because
	// another branch runs.
	TaskSkipped struct {
		Task    string `json:"task"`
		Reason  string `json:"reason"`
		Planned bool   `json:"planned,omitempty"`
	}
	// TaskInterrupted means that the task was cancelled in flight, and runs again on resume.
	TaskInterrupted struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Attempt int    `json:"attempt"`
		Message string `json:"message,omitempty"`
	}
	// EdgeExpired means that the task waited too long for another task.
	EdgeExpired struct {
		Task string `json:"task"`
		Need string `json:"need"`
	}
	// TaskReleased means that an operator has released the task.
	TaskReleased struct {
		Task   string `json:"task"`
		Reason string `json:"reason,omitempty"`
	}
	// Decided has an operator's decision.
	Decided struct {
		Task   string          `json:"task"`
		Action Action          `json:"action"`
		Output json.RawMessage `json:"output,omitempty"`
		// With replaces the inputs of the step that is retried.
		With   json.RawMessage `json:"with,omitempty"`
		Reason string          `json:"reason,omitempty"`
		// Attempt is the attempt that was decided about, in decisions of earlier versions.
		Attempt int `json:"attempt,omitempty"`
		// Question is the question that was answered, if the decision names it.
		Question int `json:"question,omitempty"`
		// StepOnly is set if only the step that asked was approved, for example a hook. The task
		// continues with its next step.
		StepOnly bool `json:"stepOnly,omitempty"`
	}
	// UndoStarted means that an attempt to undo a step starts.
	UndoStarted struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Attempt int    `json:"attempt"`
		// Release is set if the hold of the step is released, and the run is not rolled back.
		Release bool `json:"release,omitempty"`
	}
	// UndoAttemptFailed means that another attempt follows at RetryAt.
	UndoAttemptFailed struct {
		Task    string    `json:"task"`
		Step    string    `json:"step,omitempty"`
		Attempt int       `json:"attempt"`
		Message string    `json:"message"`
		RetryAt time.Time `json:"retryAt"`
	}
	// Undone means that the step is undone, or that there was nothing to undo.
	Undone struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Release bool   `json:"release,omitempty"`
		// NothingReason is why there was nothing to undo.
		NothingReason string `json:"nothingReason,omitempty"`
		// KeptReason is why the effect of the step was kept.
		KeptReason string `json:"keptReason,omitempty"`
	}
	// UndoFailed means that the undo waits for an operator.
	UndoFailed struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Message string `json:"message"`
		Release bool   `json:"release,omitempty"`
	}
	// HandlerStarted means that a failure handler runs for a task, or for the run.
	HandlerStarted struct {
		Handler string `json:"handler"`
		Task    string `json:"task,omitempty"`
	}
	// HandlerEnded means that a handler has ended. Its result does not replace the error that it handled.
	HandlerEnded struct {
		Handler string          `json:"handler"`
		Task    string          `json:"task,omitempty"`
		Error   string          `json:"error,omitempty"`
		Output  json.RawMessage `json:"output,omitempty"`
	}
)

func (Defined) event()           {}
func (Started) event()           {}
func (Claimed) event()           {}
func (Stranded) event()          {}
func (Paused) event()            {}
func (Resumed) event()           {}
func (Verified) event()          {}
func (Aborted) event()           {}
func (RollbackStarted) event()   {}
func (Ended) event()             {}
func (Migrated) event()          {}
func (TaskStarted) event()       {}
func (UndoRecorded) event()      {}
func (Progressed) event()        {}
func (AttemptFailed) event()     {}
func (StepSucceeded) event()     {}
func (TaskSucceeded) event()     {}
func (TaskFailed) event()        {}
func (TaskPaused) event()        {}
func (TaskSkipped) event()       {}
func (TaskInterrupted) event()   {}
func (EdgeExpired) event()       {}
func (TaskReleased) event()      {}
func (Decided) event()           {}
func (UndoStarted) event()       {}
func (UndoAttemptFailed) event() {}
func (Undone) event()            {}
func (UndoFailed) event()        {}
func (HandlerStarted) event()    {}
func (HandlerEnded) event()      {}

func (e TaskStarted) task() string       { return e.Task }
func (e UndoRecorded) task() string      { return e.Task }
func (e Progressed) task() string        { return e.Task }
func (e AttemptFailed) task() string     { return e.Task }
func (e StepSucceeded) task() string     { return e.Task }
func (e TaskSucceeded) task() string     { return e.Task }
func (e TaskFailed) task() string        { return e.Task }
func (e TaskPaused) task() string        { return e.Task }
func (e TaskSkipped) task() string       { return e.Task }
func (e TaskInterrupted) task() string   { return e.Task }
func (e EdgeExpired) task() string       { return e.Task }
func (e TaskReleased) task() string      { return e.Task }
func (e Decided) task() string           { return e.Task }
func (e UndoStarted) task() string       { return e.Task }
func (e UndoAttemptFailed) task() string { return e.Task }
func (e Undone) task() string            { return e.Task }
func (e UndoFailed) task() string        { return e.Task }
