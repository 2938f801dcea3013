package workflow

import (
	"encoding/json"
	"time"
)

// Event is one fact about a run.
type Event interface{ event() }

// Cause of a failure.
type Cause string

// The causes.
const (
	CauseError     Cause = "error"
	CauseTimeout   Cause = "timeout"   // of one attempt, or of all of them
	CauseLost      Cause = "lost"      // its process ended, and nobody knows how far it had come
	CauseCancelled Cause = "cancelled" // the run stopped it
	CauseDeadline  Cause = "deadline"  // of the run
	CauseOperator  Cause = "operator"
)

// Why a task waits for an operator.
type Why string

// The reasons.
const (
	WhyFailed   Why = "failed"   // it failed for good, and its policy is Pause
	WhyApproval Why = "approval" // its kind asks for a decision
	WhyUnknown  Why = "unknown"  // it may run only once, and nobody knows the result
	WhyHeld     Why = "held"     // an operator held it
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

// KeysOfSteps is the form of idempotency keys that are distinct by step, and by whether the step is performed or taken back.
const KeysOfSteps = 1

// Facts about a run.
type (
	// Defined carries a part of a definition's tasks: parts 0 to Of-1 come before the Started or Migrated that uses them.
	Defined struct {
		Part  int    `json:"part"`
		Of    int    `json:"of"`
		Tasks []Task `json:"tasks"`
	}
	// Started pins the definition.
	Started struct {
		Header
		Hash     string    `json:"hash"`
		Deadline time.Time `json:"deadlineAt,omitzero"`
		// Keys is the form of the idempotency keys: KeysOfSteps, or 0 in a run of an earlier version.
		Keys int `json:"keys,omitempty"`
		// Origin is a part of the keys of a run that was begun locally: the ID of the log in which it was begun. The ids of such runs
		// are counted from 1 in each log, so that they do not tell them apart.
		Origin string `json:"origin,omitempty"`
	}
	// Claimed says which process drives the run from here on.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// Stranded: the process that has the claim does not know what the run needs.
	Stranded struct {
		Reason string `json:"reason"`
	}
	// Paused: nothing more is started. What is in flight ends.
	Paused struct {
		Reason string `json:"reason,omitempty"`
	}
	// Resumed continues with a run that was paused, aborted, or whose process died.
	Resumed struct {
		Reason string `json:"reason,omitempty"`
		// Shift is for how long the clocks stood still.
		Shift Duration `json:"shift,omitzero"`
		// Rerun are the tasks that run again: failed, interrupted, those that always do, those whose hold is needed again,
		// and those that end it.
		Rerun []string `json:"rerun,omitempty"`
	}
	// Verified: what succeeded before a resume was looked at again. Gone are the tasks that must run once more.
	Verified struct {
		Gone []Gone `json:"gone,omitempty"`
		// Rerun are the holds that these need and that a task had ended, and the tasks that end them.
		Rerun []string `json:"rerun,omitempty"`
	}
	// Aborted: nothing more is started, what is in flight is cancelled.
	Aborted struct {
		Task    string `json:"task,omitempty"`
		Cause   Cause  `json:"cause"`
		Message string `json:"message,omitempty"`
	}
	// RollbackStarted: what is in flight is cancelled, then everything that this run did is undone.
	RollbackStarted struct {
		Task    string `json:"task,omitempty"`
		Cause   Cause  `json:"cause"`
		Message string `json:"message,omitempty"`
	}
	// Ended: nothing more happens by itself. Only an Aborted run can be resumed.
	Ended struct {
		Phase   Phase  `json:"phase"`
		Message string `json:"message,omitempty"`
	}
	// Migrated: the run continues with another definition, whose parts came before.
	Migrated struct {
		Header
		Hash string   `json:"hash"`
		Plan []Change `json:"plan"`
	}
)

// Gone is a task whose work no longer holds.
type Gone struct {
	Task string `json:"task"`
	Why  string `json:"why"`
}

// Facts about a task.
type (
	// TaskStarted: an attempt at a step begins. TimeoutAt and TotalAt are when it runs out of time.
	TaskStarted struct {
		Task      string    `json:"task"`
		Step      string    `json:"step,omitempty"`
		Attempt   int       `json:"attempt"`
		TimeoutAt time.Time `json:"timeoutAt,omitzero"`
		TotalAt   time.Time `json:"totalAt,omitzero"`
	}
	// UndoRecorded is what an attempt is going to change, and how that was before.
	UndoRecorded struct {
		Task    string          `json:"task"`
		Step    string          `json:"step,omitempty"`
		Undo    json.RawMessage `json:"undo,omitempty"`
		Adopted bool            `json:"adopted,omitempty"`
	}
	// Progressed says what an attempt waits for.
	Progressed struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Message string `json:"message"`
	}
	// AttemptFailed: another attempt follows at RetryAt.
	AttemptFailed struct {
		Task    string    `json:"task"`
		Step    string    `json:"step,omitempty"`
		Attempt int       `json:"attempt"`
		Cause   Cause     `json:"cause"`
		Message string    `json:"message,omitempty"`
		RetryAt time.Time `json:"retryAt"`
		// Output that the attempt recorded before it failed.
		Output json.RawMessage `json:"output,omitempty"`
	}
	// StepSucceeded: the next step of the task follows.
	StepSucceeded struct {
		Task   string          `json:"task"`
		Step   string          `json:"step,omitempty"`
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskSucceeded: its last step has succeeded.
	TaskSucceeded struct {
		Task   string          `json:"task"`
		Step   string          `json:"step,omitempty"`
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskFailed is final.
	TaskFailed struct {
		Task    string  `json:"task"`
		Step    string  `json:"step,omitempty"`
		Attempt int     `json:"attempt"`
		Cause   Cause   `json:"cause"`
		Message string  `json:"message,omitempty"`
		Verdict Verdict `json:"verdict"`
		Policy  Policy  `json:"policy"`
		// Children are skipped for want of this task's success by the policy or by a decision, not by the graph.
		Children bool `json:"children,omitempty"`
		// Output that the attempt recorded before it failed.
		Output json.RawMessage `json:"output,omitempty"`
	}
	// TaskPaused: it waits for an operator.
	TaskPaused struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Why     Why    `json:"why"`
		Cause   Cause  `json:"cause,omitempty"`
		Message string `json:"message,omitempty"`
		// Output that the attempt recorded before it failed.
		Output json.RawMessage `json:"output,omitempty"`
		// ClocksRun: it asks for an approval, and all clocks continue meanwhile. It fails at ExpiresAt; zero if never.
		ClocksRun bool      `json:"clocksRun,omitempty"`
		ExpiresAt time.Time `json:"expiresAt,omitzero"`
	}
	// TaskSkipped: it will not run. Planned says that the graph meant it so: another branch was taken.
	TaskSkipped struct {
		Task    string `json:"task"`
		Reason  string `json:"reason"`
		Planned bool   `json:"planned,omitempty"`
	}
	// TaskInterrupted: it was cancelled in flight, and reruns on resume.
	TaskInterrupted struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Attempt int    `json:"attempt"`
		Message string `json:"message,omitempty"`
	}
	// EdgeExpired: the task waited too long for the one it needs.
	EdgeExpired struct {
		Task string `json:"task"`
		Need string `json:"need"`
	}
	// TaskReleased: the operator's hold of a task is lifted.
	TaskReleased struct {
		Task   string `json:"task"`
		Reason string `json:"reason,omitempty"`
	}
	// Decided is an operator's decision.
	Decided struct {
		Task   string          `json:"task"`
		Action Action          `json:"action"`
		Output json.RawMessage `json:"output,omitempty"`
		// With replaces the inputs of the step that is tried again.
		With   json.RawMessage `json:"with,omitempty"`
		Reason string          `json:"reason,omitempty"`
		// Attempt that was decided about, in decisions of versions that named it.
		Attempt int `json:"attempt,omitempty"`
		// Question that was answered, if the decision names it.
		Question int `json:"question,omitempty"`
		// StepOnly: what was approved is the step that asked, a hook for example. The task continues with its next step.
		StepOnly bool `json:"stepOnly,omitempty"`
	}
	// UndoStarted: an attempt to take a step back begins.
	UndoStarted struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Attempt int    `json:"attempt"`
		// Release: the run is not rolled back; it gives back what the step held.
		Release bool `json:"release,omitempty"`
	}
	// UndoAttemptFailed: another attempt follows at RetryAt.
	UndoAttemptFailed struct {
		Task    string    `json:"task"`
		Step    string    `json:"step,omitempty"`
		Attempt int       `json:"attempt"`
		Message string    `json:"message"`
		RetryAt time.Time `json:"retryAt"`
	}
	// Undone: the step is taken back, or there was nothing to take back.
	Undone struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Release bool   `json:"release,omitempty"`
		// Nothing says why there was nothing to do.
		Nothing string `json:"nothing,omitempty"`
		// Kept says why what the step did is left as it is.
		Kept string `json:"kept,omitempty"`
	}
	// UndoFailed waits for an operator.
	UndoFailed struct {
		Task    string `json:"task"`
		Step    string `json:"step,omitempty"`
		Message string `json:"message"`
		Release bool   `json:"release,omitempty"`
	}
	// HandlerStarted: a handler of the error channel runs for a task, or for the run.
	HandlerStarted struct {
		Handler string `json:"handler"`
		Task    string `json:"task,omitempty"`
	}
	// HandlerEnded: whatever the result, the first error remains.
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
