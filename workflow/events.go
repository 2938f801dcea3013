package workflow

import (
	"encoding/json"
	"time"

	"scute.dev/api/v1alpha1"
)

// Event is an event of a run.
type Event interface {
	// task returns the task that the event is about; "" for an event about the run.
	task() string
}

// Cause classifies a failure.
type Cause string

// The causes of failures.
const (
	CauseError     Cause = "error"
	CauseTimeout   Cause = "timeout"   // of one attempt, or of all attempts together
	CauseLost      Cause = "lost"      // the process died, and the outcome is unknown
	CauseCancelled Cause = "cancelled" // the run cancelled the attempt
	CauseDeadline  Cause = "deadline"  // of the run
	CauseOperator  Cause = "operator"
)

// PauseReason is why a task waits for an operator.
type PauseReason string

// The reasons for a pause.
const (
	ReasonFailed   PauseReason = "failed"   // it failed permanently, and its policy is Pause
	ReasonApproval PauseReason = "approval" // its kind asks for a decision
	ReasonUnknown  PauseReason = "unknown"  // it may run at most once, and its outcome is unknown
	ReasonHeld     PauseReason = "held"     // an operator held it
)

// Action is an operator's decision about a task.
type Action string

// The actions.
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

// StepKeys is the current form of idempotency keys: they differ by step, and between a step and its undo.
const StepKeys = 1

// The events of a run as a whole.
type (
	// Defined contains tasks of a definition. Parts 0 to Of-1 precede the Started or Migrated event
	// that uses them.
	Defined struct {
		Part  int    `json:"part"`
		Of    int    `json:"of"`
		Tasks []Task `json:"tasks"`
	}
	Started struct {
		Header
		Hash     string    `json:"hash"`
		Deadline time.Time `json:"deadlineAt,omitzero"`
		// KeyForm is StepKeys; logs of earlier versions lack it.
		KeyForm int `json:"keyForm,omitempty"`
		// Origin is the ID of the log of a local run. Idempotency keys contain it, because each log
		// numbers its local runs from 1.
		Origin string `json:"origin,omitempty"`
	}
	// Claimed records the process that drives the run from now on.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// Stranded means that the claiming process does not know a kind that the run needs.
	Stranded struct {
		Reason string `json:"reason"`
	}
	// Paused means that no further effect starts. Effects in flight continue to their end.
	Paused struct {
		Reason string `json:"reason,omitempty"`
	}
	// Resumed continues a run that was paused or aborted, or whose process died.
	Resumed struct {
		Reason string   `json:"reason,omitempty"`
		Shift  Duration `json:"shift,omitzero"`
		// Rerun lists the tasks that run again: tasks that failed, were interrupted or always rerun,
		// tasks whose hold is needed again, and tasks that release such a hold.
		Rerun []string `json:"rerun,omitempty"`
	}
	// Verified records the check of succeeded tasks after a resume. The tasks in Gone must run again.
	Verified struct {
		Gone []Gone `json:"gone,omitempty"`
		// Rerun lists tasks whose released hold is needed again, and the tasks that release it.
		Rerun []string `json:"rerun,omitempty"`
	}
	// Aborted means that no further effect starts and effects in flight are cancelled.
	Aborted struct {
		Task    string `json:"task,omitempty"`
		Cause   Cause  `json:"cause"`
		Message string `json:"message,omitempty"`
	}
	// RollbackStarted means that effects in flight are cancelled, and then all steps are undone.
	RollbackStarted struct {
		Task    string `json:"task,omitempty"`
		Cause   Cause  `json:"cause"`
		Message string `json:"message,omitempty"`
	}
	// Ended means that the run has ended. It can be resumed only if Phase is Aborted.
	Ended struct {
		Phase   v1alpha1.RunPhase `json:"phase"`
		Message string            `json:"message,omitempty"`
	}
	// Migrated means that the run continues with another definition. The Defined events of that
	// definition precede this event.
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

// The events of a task.
type (
	// TaskStarted means that an attempt at a step starts. TotalAt ends all attempts together.
	TaskStarted struct {
		Task      string    `json:"task"`
		Step      string    `json:"step,omitempty"`
		Attempt   int       `json:"attempt"`
		TimeoutAt time.Time `json:"timeoutAt,omitzero"`
		TotalAt   time.Time `json:"totalAt,omitzero"`
	}
	// UndoRecorded contains the change that an attempt is about to make, and the state before the
	// change.
	UndoRecorded struct {
		Task    string          `json:"task"`
		Step    string          `json:"step,omitempty"`
		Undo    json.RawMessage `json:"undo,omitempty"`
		Adopted bool            `json:"adopted,omitempty"`
	}
	// Progressed contains a sentence that describes what an attempt is waiting for.
	Progressed struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Message string `json:"message"`
	}
	// AttemptFailed means that the next attempt starts at RetryAt.
	AttemptFailed struct {
		Task    string    `json:"task"`
		Step    string    `json:"step,omitempty"`
		Attempt int       `json:"attempt"`
		Cause   Cause     `json:"cause"`
		Message string    `json:"message,omitempty"`
		RetryAt time.Time `json:"retryAt"`
		// Output is the output that the attempt recorded before it failed.
		Output json.RawMessage `json:"output,omitempty"`
	}
	// StepSucceeded means that the task continues with its next step.
	StepSucceeded struct {
		Task   string          `json:"task"`
		Step   string          `json:"step,omitempty"`
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskSucceeded means that the last step of the task succeeded.
	TaskSucceeded struct {
		Task   string          `json:"task"`
		Step   string          `json:"step,omitempty"`
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskFailed means that the task failed permanently.
	TaskFailed struct {
		Task    string                 `json:"task"`
		Step    string                 `json:"step,omitempty"`
		Attempt int                    `json:"attempt"`
		Cause   Cause                  `json:"cause"`
		Message string                 `json:"message,omitempty"`
		Verdict v1alpha1.Verdict       `json:"verdict"`
		Policy  v1alpha1.FailurePolicy `json:"policy"`
		// SkipsChildren means that a policy or a decision, not the graph, skips dependent tasks.
		SkipsChildren bool            `json:"skipsChildren,omitempty"`
		Output        json.RawMessage `json:"output,omitempty"`
	}
	TaskPaused struct {
		Task    string          `json:"task"`
		Step    string          `json:"step,omitempty"`
		Reason  PauseReason     `json:"reason"`
		Cause   Cause           `json:"cause,omitempty"`
		Message string          `json:"message,omitempty"`
		Output  json.RawMessage `json:"output,omitempty"`
		// ClocksRun is set for an approval: timeouts keep running. If ExpiresAt is set, the task fails at
		// that time.
		ClocksRun bool      `json:"clocksRun,omitempty"`
		ExpiresAt time.Time `json:"expiresAt,omitzero"`
	}
	// TaskSkipped means that the task will not run. If Planned is set, the graph intends that.
	TaskSkipped struct {
		Task    string `json:"task"`
		Reason  string `json:"reason"`
		Planned bool   `json:"planned,omitempty"`
	}
	// TaskInterrupted means that the task was cancelled in flight. It runs again on resume.
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
	// TaskReleased means that an operator released a held task.
	TaskReleased struct {
		Task   string `json:"task"`
		Reason string `json:"reason,omitempty"`
	}
	// Decided records an operator's decision.
	Decided struct {
		Task   string          `json:"task"`
		Action Action          `json:"action"`
		Output json.RawMessage `json:"output,omitempty"`
		// With replaces the inputs of the retried step.
		With   json.RawMessage `json:"with,omitempty"`
		Reason string          `json:"reason,omitempty"`
		// Attempt is set only in decisions of earlier versions, which had no Question.
		Attempt int `json:"attempt,omitempty"`
		// Question is the number of the answered question, if the decision names one.
		Question int `json:"question,omitempty"`
		// StepOnly means that only the waiting step, such as a hook, was approved. The next step follows.
		StepOnly bool `json:"stepOnly,omitempty"`
	}
	// UndoStarted means that an attempt to undo a step starts.
	UndoStarted struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Attempt int    `json:"attempt"`
		// Release is set if the undo releases a hold outside of a rollback.
		Release bool `json:"release,omitempty"`
	}
	// UndoAttemptFailed means that the next attempt to undo starts at RetryAt.
	UndoAttemptFailed struct {
		Task    string    `json:"task"`
		Step    string    `json:"step,omitempty"`
		Attempt int       `json:"attempt"`
		Message string    `json:"message"`
		RetryAt time.Time `json:"retryAt"`
	}
	// Undone means that the step was undone, or that nothing had to be undone.
	Undone struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Release bool   `json:"release,omitempty"`
		// NothingReason is why nothing had to be undone.
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
	// HandlerStarted means that a failure handler runs, for a task or for the run.
	HandlerStarted struct {
		Handler string `json:"handler"`
		Task    string `json:"task,omitempty"`
	}
	// HandlerEnded means that a handler has ended. The error of the handler does not replace the error
	// that it handled.
	HandlerEnded struct {
		Handler string          `json:"handler"`
		Task    string          `json:"task,omitempty"`
		Error   string          `json:"error,omitempty"`
		Output  json.RawMessage `json:"output,omitempty"`
	}
)

func (Defined) task() string         { return "" }
func (Started) task() string         { return "" }
func (Claimed) task() string         { return "" }
func (Stranded) task() string        { return "" }
func (Paused) task() string          { return "" }
func (Resumed) task() string         { return "" }
func (Verified) task() string        { return "" }
func (Aborted) task() string         { return "" }
func (RollbackStarted) task() string { return "" }
func (Ended) task() string           { return "" }
func (Migrated) task() string        { return "" }
func (HandlerStarted) task() string  { return "" }
func (HandlerEnded) task() string    { return "" }

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
