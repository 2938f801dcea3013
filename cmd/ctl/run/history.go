package run

import (
	"cmp"
	"time"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// history contains every attempt and every decision of a run. The state of the run does not keep
// them.
type history struct {
	tasks map[string]*TaskHistory
	// Words are the decisions about the run as a whole, in order.
	Words      []Decision
	Migrations []Migration
}

// TaskHistory is the history of a task.
type TaskHistory struct {
	// Attempts are in the order of their start.
	Attempts []Attempt
	// Words are the decisions of operators about the task.
	Words []Decision
}

// Attempt is one attempt of a step, or of its undo.
type Attempt struct {
	// Step is the name of a hook, or "" for the task's own step.
	Step string
	Undo bool
	// N counts the attempts of the step, or of its undo, from 1.
	N              int
	Started, Ended time.Time
	// Outcome is "" while the attempt is in progress.
	Outcome, Message string
}

// Decision is a decision of an operator, or of the engine about the run as a whole.
type Decision struct {
	At     time.Time
	Actor  string
	What   string
	Reason string
}

func newHistory() *history { return &history{tasks: make(map[string]*TaskHistory)} }

// Task returns the history of a task.
func (h *history) Task(name string) TaskHistory {
	if h == nil || h.tasks[name] == nil {
		return TaskHistory{}
	}
	return *h.tasks[name]
}

func (h *history) task(name string) *TaskHistory {
	if h.tasks[name] == nil {
		h.tasks[name] = &TaskHistory{}
	}
	return h.tasks[name]
}

func (t *TaskHistory) of(step string, undo bool) (list []*Attempt) {
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Step == step && a.Undo == undo {
			list = append(list, a)
		}
	}
	return list
}

// start adds an attempt. If a.N is 0, the attempt gets the next number.
func (t *TaskHistory) start(a Attempt) {
	if a.N == 0 {
		a.N = len(t.of(a.Step, a.Undo)) + 1
	}
	t.Attempts = append(t.Attempts, a)
}

// end records the end of a step's last attempt, if that attempt has not ended. For an undo that was
// never started, it adds an attempt.
func (t *TaskHistory) end(step string, undo bool, at time.Time, outcome, message string) {
	list := t.of(step, undo)
	switch n := len(list); {
	case n > 0 && (list[n-1].Outcome == "" || list[n-1].Outcome == awaitingApproval):
		list[n-1].Ended, list[n-1].Outcome, list[n-1].Message = at, outcome, message
	case undo:
		t.start(Attempt{Step: step, Undo: true, Started: at, Ended: at, Outcome: outcome, Message: message})
	}
}

func (t *TaskHistory) answer(action workflow.Action, at time.Time) {
	for i := range t.Attempts {
		if a := &t.Attempts[i]; a.Outcome == awaitingApproval {
			a.Ended, a.Outcome = at, "answered"
			if action == workflow.ActSucceed {
				a.Outcome = "approved"
			}
		}
	}
}

func (h *history) apply(e workflow.Event, ev eventlog.Event) {
	decide := func(words *[]Decision, what, reason string) {
		*words = append(*words, Decision{At: ev.Time, Actor: kit.Actor(ev.Actor), What: what, Reason: reason})
	}
	start := func(task, step string, undo bool, n int) {
		h.task(task).start(Attempt{Step: step, Undo: undo, N: n, Started: ev.Time})
	}
	end := func(task, step, outcome, message string) { h.task(task).end(step, false, ev.Time, outcome, message) }
	endUndo := func(task, step, outcome, message string) { h.task(task).end(step, true, ev.Time, outcome, message) }
	switch e := e.(type) {
	case workflow.Paused:
		decide(&h.Words, "pause", e.Reason)
	case workflow.Resumed:
		decide(&h.Words, "resume", e.Reason)
	case workflow.Migrated:
		decide(&h.Words, "migrate to another definition", "")
	case workflow.Decided:
		h.task(e.Task).answer(e.Action, ev.Time)
		decide(&h.task(e.Task).Words, string(e.Action), e.Reason)
	case workflow.TaskReleased:
		decide(&h.task(e.Task).Words, "release", e.Reason)
	case workflow.TaskPaused:
		if e.Reason == workflow.ReasonHeld {
			decide(&h.task(e.Task).Words, "hold", e.Message)
		} else {
			end(e.Task, e.Step, pauseOutcome(e.Reason), e.Message)
		}
	case workflow.TaskStarted:
		start(e.Task, e.Step, false, e.Attempt)
	case workflow.AttemptFailed:
		end(e.Task, e.Step, failureOutcome(e.Cause), e.Message)
	case workflow.StepSucceeded:
		end(e.Task, e.Step, "succeeded", "")
	case workflow.TaskSucceeded:
		end(e.Task, e.Step, "succeeded", "")
	case workflow.TaskFailed:
		end(e.Task, e.Step, failureOutcome(e.Cause), e.Message)
	case workflow.TaskInterrupted:
		end(e.Task, e.Step, "interrupted", e.Message)
	case workflow.UndoStarted:
		start(e.Task, e.Step, true, e.Attempt)
	case workflow.UndoAttemptFailed:
		endUndo(e.Task, e.Step, "failed", e.Message)
	case workflow.UndoFailed:
		endUndo(e.Task, e.Step, "failed", e.Message)
	case workflow.Undone:
		endUndo(e.Task, e.Step, "undone", e.NothingReason)
	case workflow.HandlerStarted:
		start(e.Task, e.Handler, false, 0)
	case workflow.HandlerEnded: // for a handler of the failure of the run, e.Task is ""
		what := "succeeded"
		if e.Error != "" {
			what = "failed"
		}
		end(e.Task, e.Handler, what, e.Error)
	}
}

// awaitingApproval is the outcome of an attempt that waits for an approval.
const awaitingApproval = "asks"

func failureOutcome(c workflow.Cause) string {
	return cmp.Or(map[workflow.Cause]string{
		workflow.CauseTimeout: "out of time", workflow.CauseLost: string(workflow.CauseLost), workflow.CauseCancelled: string(workflow.CauseCancelled),
	}[c], "failed")
}

func pauseOutcome(why workflow.PauseReason) string {
	return cmp.Or(map[workflow.PauseReason]string{workflow.ReasonApproval: awaitingApproval, workflow.ReasonUnknown: "unknown"}[why], "failed")
}
