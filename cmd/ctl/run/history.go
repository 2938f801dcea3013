package run

import (
	"time"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// History has every attempt of a run and every decision, which the state of a run does not have.
type History struct {
	tasks map[string]*TaskHistory
	// Words are the decisions about the run as a whole, in their order.
	Words []Decision
	// Migrations to other definitions, in their order.
	Migrations []Migration
}

// TaskHistory is the history of a task.
type TaskHistory struct {
	// Steps in the order of their first start: the hooks before, the task's own ("") and the hooks after.
	Steps []*StepHistory
	// Words are the decisions of operators about the task.
	Words []Decision
}

// StepHistory is the history of a step.
type StepHistory struct {
	Name            string
	Attempts, Undos []Attempt
}

// Attempt is one attempt of a step, or of its undo.
type Attempt struct {
	N              int
	Started, Ended time.Time
	// Outcome is a word, or "" while the attempt is in progress.
	Outcome, Message string
}

// Decision is a decision of an operator, or of the engine about the run as a whole.
type Decision struct {
	At     time.Time
	Actor  string
	What   string
	Reason string
}

func newHistory() *History { return &History{tasks: make(map[string]*TaskHistory)} }

// Task returns the history of a task, or nil if there is none.
func (h *History) Task(name string) *TaskHistory {
	if h == nil {
		return nil
	}
	return h.tasks[name]
}

func (h *History) task(name string) *TaskHistory {
	if h.tasks[name] == nil {
		h.tasks[name] = &TaskHistory{}
	}
	return h.tasks[name]
}

func (h *History) step(task, name string) *StepHistory {
	t := h.task(task)
	for _, s := range t.Steps {
		if s.Name == name {
			return s
		}
	}
	s := &StepHistory{Name: name}
	t.Steps = append(t.Steps, s)
	return s
}

func (h *History) end(task, step string, at time.Time, outcome, message string) {
	s := h.step(task, step)
	if n := len(s.Attempts); n > 0 && (s.Attempts[n-1].Outcome == "" || s.Attempts[n-1].Outcome == awaitingApproval) {
		a := &s.Attempts[n-1]
		a.Ended, a.Outcome, a.Message = at, outcome, message
	}
}

// answer ends the attempt that waits for an approval.
func (h *History) answer(e workflow.Decided, at time.Time) {
	outcome := "answered"
	if e.Action == workflow.ActSucceed {
		outcome = "approved"
	}
	for _, s := range h.task(e.Task).Steps {
		if n := len(s.Attempts); n > 0 && s.Attempts[n-1].Outcome == awaitingApproval {
			h.end(e.Task, s.Name, at, outcome, s.Attempts[n-1].Message)
		}
	}
}

func (h *History) endUndo(task, step string, at time.Time, outcome, message string) {
	s := h.step(task, step)
	if n := len(s.Undos); n == 0 || s.Undos[n-1].Outcome != "" { // no undo was started
		s.Undos = append(s.Undos, Attempt{N: n + 1, Started: at})
	}
	a := &s.Undos[len(s.Undos)-1]
	a.Ended, a.Outcome, a.Message = at, outcome, message
}

func (h *History) apply(e workflow.Event, ev eventlog.Event) {
	add := func(words *[]Decision, what, reason string) {
		*words = append(*words, Decision{At: ev.Time, Actor: kit.Actor(ev.Actor), What: what, Reason: reason})
	}
	switch e := e.(type) {
	case workflow.Paused:
		add(&h.Words, "pause", e.Reason)
	case workflow.Resumed:
		add(&h.Words, "resume", e.Reason)
	case workflow.Migrated:
		add(&h.Words, "migrate to another definition", "")
	case workflow.Decided:
		h.answer(e, ev.Time)
		add(&h.task(e.Task).Words, string(e.Action), e.Reason)
	case workflow.TaskReleased:
		add(&h.task(e.Task).Words, "release", e.Reason)
	case workflow.TaskPaused:
		if e.Reason == workflow.ReasonHeld {
			add(&h.task(e.Task).Words, "hold", e.Message)
		} else {
			h.end(e.Task, e.Step, ev.Time, outcomeOf(e.Reason), e.Message)
		}
	case workflow.TaskStarted:
		s := h.step(e.Task, e.Step)
		s.Attempts = append(s.Attempts, Attempt{N: e.Attempt, Started: ev.Time})
	case workflow.AttemptFailed:
		h.end(e.Task, e.Step, ev.Time, outcome(e.Cause), e.Message)
	case workflow.StepSucceeded:
		h.end(e.Task, e.Step, ev.Time, "succeeded", "")
	case workflow.TaskSucceeded:
		h.end(e.Task, e.Step, ev.Time, "succeeded", "")
	case workflow.TaskFailed:
		h.end(e.Task, e.Step, ev.Time, outcome(e.Cause), e.Message)
	case workflow.TaskInterrupted:
		h.end(e.Task, e.Step, ev.Time, "interrupted", e.Message)
	default:
		h.applyUndo(e, ev)
	}
}

func (h *History) applyUndo(e workflow.Event, ev eventlog.Event) {
	switch e := e.(type) {
	case workflow.UndoStarted:
		s := h.step(e.Task, e.Step)
		s.Undos = append(s.Undos, Attempt{N: e.Attempt, Started: ev.Time})
	case workflow.UndoAttemptFailed:
		h.endUndo(e.Task, e.Step, ev.Time, "failed", e.Message)
	case workflow.UndoFailed:
		h.endUndo(e.Task, e.Step, ev.Time, "failed", e.Message)
	case workflow.Undone:
		h.endUndo(e.Task, e.Step, ev.Time, "undone", e.NothingReason)
	case workflow.HandlerStarted:
		s := h.step(e.Task, e.Handler)
		s.Attempts = append(s.Attempts, Attempt{N: len(s.Attempts) + 1, Started: ev.Time})
	case workflow.HandlerEnded: // e.Task is "" for a handler of the run's failure
		what := "succeeded"
		if e.Error != "" {
			what = "failed"
		}
		h.end(e.Task, e.Handler, ev.Time, what, e.Error)
	}
}

// awaitingApproval is the outcome of an attempt while it waits for an approval.
const awaitingApproval = "asks"

// outcome returns the outcome of an attempt for the cause of its failure.
func outcome(c workflow.Cause) string {
	switch c {
	case workflow.CauseTimeout:
		return "out of time"
	case workflow.CauseLost, workflow.CauseCancelled:
		return string(c)
	default:
		return "failed"
	}
}

func outcomeOf(why workflow.PauseReason) string {
	switch why {
	case workflow.ReasonApproval:
		return awaitingApproval
	case workflow.ReasonUnknown:
		return "unknown"
	default:
		return "failed"
	}
}
