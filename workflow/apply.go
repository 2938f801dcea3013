package workflow

import (
	"encoding/json"
	"time"

	"scute.dev/api/v1alpha1"
)

// Apply folds an event in. It is total: what does not fit is passed over.
func (s *State) Apply(e Event, at time.Time) {
	s.standStill(e, at)
	s.lastAt = at
	switch e := e.(type) {
	case Defined:
		s.applyPart(e)
	case Started:
		s.Header, s.Hash, s.deadline = e.Header, e.Hash, e.Deadline
		s.load(s.parts)
		s.parts, s.startedAt = nil, at
	case Migrated:
		s.applyMigrated(e, at)
	case HandedOver:
		s.HandedOver = e.To
	case Received:
		s.HandedOver = ""
	default:
		if s.Hash != "" {
			s.applyRun(e, at)
		}
	}
	s.dropStale()
	if s.rollingBack() && !s.stopping.undoGraphMade && s.running.n == 0 {
		s.beginUndo()
	}
}

// standStill stops the clocks for the time in which nothing but an operator could bring the run on.
func (s *State) standStill(e Event, at time.Time) {
	switch e.(type) {
	case Decided, TaskReleased:
		if !s.paused && CurrentPhase(s) == v1alpha1.RunPaused {
			s.shift(at.Sub(s.lastAt))
		}
	}
}

func (s *State) applyPart(e Defined) {
	if e.Part == 0 {
		s.parts, s.nextPart = nil, 0
	}
	if e.Part != s.nextPart {
		return
	}
	s.parts = append(s.parts, e.Tasks...)
	s.nextPart, s.partsLeft = e.Part+1, e.Of-e.Part-1
}

func (s *State) applyRun(e Event, at time.Time) {
	switch e := e.(type) {
	case Claimed:
		s.applyClaimed(e, at)
	case Stranded:
		s.Stranded = e.Reason
	case Paused:
		s.paused, s.pausedReason, s.pausedAt = true, e.Reason, at
	case Resumed:
		s.applyResumed(e, at)
	case Verified:
		s.verify = false
		for _, g := range e.Gone {
			s.reopenNamed(g.Task, at)
		}
	case Aborted:
		s.stopWith(&stop{task: e.Task, cause: e.Cause, message: e.Message})
	case RollbackStarted:
		s.ended = nil
		s.stopWith(&stop{rollback: true, task: e.Task, cause: e.Cause, message: e.Message})
	case Ended:
		s.ended, s.endedAt = &e, at
	case HandlerStarted:
		s.setHandler(e.Handler, e.Task, true)
	case HandlerEnded:
		s.setHandler(e.Handler, e.Task, false)
	default:
		s.applyTask(e, at)
	}
}

func (s *State) applyClaimed(e Claimed, at time.Time) {
	if s.claimedAt.IsZero() {
		s.claimedAt = at
	}
	s.Holder, s.Stranded = e.Holder, ""
	for i := range s.running.all() {
		s.lost.put(i, true)
	}
	for i := range s.undoing.all() {
		s.tasks[i].undo = undoDue
		s.undoable.put(i, true)
	}
	s.undoing.clear()
	for i := range s.handlers {
		s.handlers[i].running = false
	}
}

func (s *State) applyResumed(e Resumed, at time.Time) {
	s.paused, s.pausedReason, s.Stranded = false, "", ""
	if s.ended != nil && s.ended.Phase == v1alpha1.RunAborted {
		s.ended, s.stopping = nil, nil
	}
	s.shift(time.Duration(e.Shift))
	for _, name := range e.Rerun {
		s.reopenNamed(name, at)
	}
	s.verify = true
}

func (s *State) reopenNamed(name string, at time.Time) {
	i, ok := s.index(name)
	if !ok {
		return
	}
	t := &s.tasks[i]
	if t.phase == taskSucceeded { // all of it again; a failed or interrupted task goes on with the step it was at
		t.step = 0
		for n := range t.steps {
			t.steps[n].done, t.steps[n].undone = false, false
		}
		t.undo = undoNone
	}
	s.reopen(i, at)
}

// stopWith takes a verdict on the run: the first one wins, but for a rollback of what was aborted.
func (s *State) stopWith(v *stop) {
	if s.stopping == nil || v.rollback && !s.stopping.rollback {
		s.stopping = v
		s.callHandlers("", v.cause, v.message)
	}
}

// callHandlers has the error channel run, for a task or for the run as a whole.
func (s *State) callHandlers(task string, cause Cause, message string) {
	if s.firstError == "" {
		s.firstError = message
		if task != "" {
			s.firstError = task + ": " + message
		}
	}
	for h := range s.OnFailure {
		s.handlers = append(s.handlers, handling{handler: h, task: task, cause: cause, message: message})
	}
}

func (s *State) setHandler(name, task string, running bool) {
	for i, h := range s.handlers {
		if s.OnFailure[h.handler].Name != name || h.task != task || h.running == running {
			continue
		}
		if running {
			s.handlers[i].running = true
		} else {
			s.handlers = append(s.handlers[:i:i], s.handlers[i+1:]...)
		}
		return
	}
}

func (s *State) applyTask(e Event, at time.Time) {
	name := taskOf(e)
	i, ok := s.index(name)
	if !ok {
		return
	}
	t := &s.tasks[i]
	switch e := e.(type) {
	case TaskStarted:
		s.applyStarted(i, e, at)
	case UndoRecorded:
		step := &t.steps[s.stepIndex(i, e.Step)]
		step.undo, step.adopted = e.Undo, e.Adopted
	case Progressed:
		t.message = e.Message
	case AttemptFailed:
		t.message, t.retryAt = e.Message, e.RetryAt
		if e.Cause != CauseLost {
			t.failures++
			t.recreate = s.def[i].Steps[t.step].Retry.Recreate
		}
		s.setPhase(i, taskRetrying, "", at)
		s.alarm(e.RetryAt, i, ringRetry)
	case StepSucceeded:
		s.stepDone(t, e.Output)
		t.step, t.failures, t.recreate, t.message, t.totalAt = min(t.step+1, len(t.steps)-1), 0, false, "", time.Time{}
		s.setPhase(i, taskPending, "", at)
	case TaskSucceeded:
		s.stepDone(t, e.Output)
		t.failures, t.recreate, t.message, t.why = 0, false, "", ""
		s.setPhase(i, taskSucceeded, v1alpha1.VerdictSatisfied, at)
	case TaskFailed:
		t.message, t.children = e.Message, e.Children
		phase := taskFailed
		if e.Verdict == v1alpha1.VerdictIgnored {
			phase = taskIgnored
		}
		s.setPhase(i, phase, e.Verdict, at)
		s.callHandlers(e.Task, e.Cause, e.Message)
	case TaskPaused:
		t.message, t.why = e.Message, e.Why
		s.setPhase(i, taskPaused, "", at)
		if e.Why == WhyFailed {
			s.callHandlers(e.Task, e.Cause, e.Message)
		}
	case TaskSkipped:
		t.message, t.planned = e.Reason, e.Planned
		s.setPhase(i, taskSkipped, "", at)
	case TaskInterrupted:
		t.message = e.Message
		s.setPhase(i, taskInterrupted, "", at)
	case EdgeExpired:
		for n := range t.edges {
			if s.def[i].Needs[n].Task == e.Need && t.edges[n].state == edgeOpen {
				s.setEdge(child{i, n}, edgeBad)
				t.edges[n].expired = true
			}
		}
	case TaskReleased:
		s.reopen(i, at)
	case Decided:
		s.applyDecided(i, e, at)
	default:
		s.applyUndo(i, e, at)
	}
}

func (s *State) stepDone(t *taskState, output json.RawMessage) {
	t.steps[t.step].done, t.steps[t.step].output = true, output
	s.outputs = s.outputs || output != nil
}

func (s *State) applyStarted(i int, e TaskStarted, at time.Time) {
	t := &s.tasks[i]
	t.step = s.stepIndex(i, e.Step)
	step := &t.steps[t.step]
	step.started, step.undone, step.attempt = true, false, e.Attempt
	if s.def[i].Steps[t.step].Name == "" {
		t.attempts++
	}
	if t.startedAt.IsZero() {
		t.startedAt = at
		s.startEdges(i, at)
	}
	if s.def[i].Steps[t.step].Holds {
		s.holding.put(i, true)
	}
	t.timeoutAt, t.totalAt, t.message, t.undo = e.TimeoutAt, e.TotalAt, "", undoNone
	s.setPhase(i, taskRunning, "", at)
}

// applyDecided is an operator's word on a task that waits for one.
func (s *State) applyDecided(i int, e Decided, at time.Time) {
	t := &s.tasks[i]
	switch e.Action {
	case ActRetry:
		if e.With != nil {
			t.steps[t.step].with = e.With
		}
		s.reopen(i, at)
	case ActSucceed:
		t.steps[s.def[i].Own()].output = e.Output
		s.outputs = s.outputs || e.Output != nil
		for n := range t.steps {
			t.steps[n].done = true
		}
		t.message, t.why = "an operator said that it succeeded", ""
		s.setPhase(i, taskSucceeded, v1alpha1.VerdictSatisfied, at)
	case ActIgnore:
		t.why = ""
		s.setPhase(i, taskIgnored, v1alpha1.VerdictIgnored, at)
	case ActIgnoreChildren:
		t.why, t.children = "", true
		s.setPhase(i, taskFailed, v1alpha1.VerdictHandled, at)
	case ActRetryUndo:
		t.undoAttempts = 0
		s.setUndo(i, undoDue)
	case ActMarkUndone:
		s.stepUndone(i)
	}
}

// taskOf is the name of the task that an event is about.
func taskOf(e Event) string {
	switch e := e.(type) {
	case TaskStarted:
		return e.Task
	case UndoRecorded:
		return e.Task
	case Progressed:
		return e.Task
	case AttemptFailed:
		return e.Task
	case StepSucceeded:
		return e.Task
	case TaskSucceeded:
		return e.Task
	case TaskFailed:
		return e.Task
	case TaskPaused:
		return e.Task
	case TaskSkipped:
		return e.Task
	case TaskInterrupted:
		return e.Task
	case EdgeExpired:
		return e.Task
	case TaskReleased:
		return e.Task
	case Decided:
		return e.Task
	case UndoStarted:
		return e.Task
	case UndoAttemptFailed:
		return e.Task
	case Undone:
		return e.Task
	case UndoFailed:
		return e.Task
	default:
		return ""
	}
}
