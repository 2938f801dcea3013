package workflow

import (
	"fmt"
	"time"

	"scute.dev/api/v1alpha1"
)

// Decide says what follows from an input: the facts to append, in their order. The state is not changed. An error refuses
// an operator's command, and says what would be taken. Ask with a Tick until nothing follows any more.
func Decide(s *State, in Input, now time.Time) ([]Event, error) {
	if !s.Known() {
		if _, command := in.(Tick); command {
			return nil, nil
		}
		return nil, fmt.Errorf("the run is not in the log, or not all of its definition")
	}
	switch in := in.(type) {
	case Tick:
		return s.tick(in, now), nil
	case ActDone:
		return s.actDone(in), nil
	case ActFailed:
		return s.actFailed(in, now), nil
	case ActAsks:
		if i, ok := s.acting(in.Task, in.Step, in.Attempt); ok && s.stopping == nil {
			return []Event{TaskPaused{Task: s.def[i].Name, Step: in.Step, Why: WhyApproval, Message: in.Message}}, nil
		} else if ok {
			return []Event{TaskInterrupted{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Message: in.Message}}, nil
		}
	case ActRecords:
		if _, ok := s.acting(in.Task, in.Step, in.Attempt); ok {
			return []Event{UndoRecorded{Task: in.Task, Step: in.Step, Undo: in.Undo, Adopted: in.Adopted}}, nil
		}
	case ActSays:
		if i, ok := s.acting(in.Task, in.Step, in.Attempt); ok && s.tasks[i].message != in.Message {
			return []Event{Progressed{Task: in.Task, Step: in.Step, Message: in.Message}}, nil
		}
	case UndoDone:
		if _, ok := s.beingUndone(in.Task, in.Step); ok {
			return []Event{Undone{Task: in.Task, Step: in.Step, Release: !s.rollingBack()}}, nil
		}
	case UndoBroke:
		return s.undoBroke(in, now), nil
	case HandlerDone:
		for _, h := range s.handlers {
			if h.running && h.task == in.Task && s.OnFailure[h.handler].Name == in.Handler {
				return []Event{HandlerEnded{Handler: in.Handler, Task: in.Task, Error: in.Error, Output: in.Output}}, nil
			}
		}
	case VerifyDone:
		if s.verify {
			return []Event{Verified{Gone: in.Gone}}, nil
		}
	default:
		return s.command(in, now)
	}
	return nil, nil
}

// acting finds the task whose attempt is in flight.
func (s *State) acting(task, step string, attempt int) (int, bool) {
	i, ok := s.index(task)
	if !ok || s.tasks[i].phase != taskRunning || s.tasks[i].attempt() != attempt || s.def[i].Steps[s.tasks[i].step].Name != step {
		return 0, false
	}
	return i, true
}

func (s *State) beingUndone(task, step string) (int, bool) {
	i, ok := s.index(task)
	if !ok || s.tasks[i].undo != undoRunning || s.def[i].Steps[s.tasks[i].step].Name != step {
		return 0, false
	}
	return i, true
}

func (s *State) actDone(in ActDone) []Event {
	i, ok := s.acting(in.Task, in.Step, in.Attempt)
	if !ok {
		return nil
	}
	if s.tasks[i].step == len(s.def[i].Steps)-1 {
		return []Event{TaskSucceeded{Task: in.Task, Step: in.Step, Output: in.Output}}
	}
	return []Event{StepSucceeded{Task: in.Task, Step: in.Step, Output: in.Output}}
}

// actFailed retries, or takes the verdict that the task's policy calls for.
func (s *State) actFailed(in ActFailed, now time.Time) []Event {
	i, ok := s.acting(in.Task, in.Step, in.Attempt)
	if !ok {
		return nil
	}
	t, step := &s.tasks[i], &s.def[i].Steps[s.tasks[i].step]
	if s.stopping != nil {
		return []Event{TaskInterrupted{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Message: in.Message}}
	}
	if !in.Final && t.failures < step.Retry.Max {
		at := now.Add(step.Retry.Wait(t.failures + 1))
		if t.totalAt.IsZero() || at.Before(t.totalAt) {
			return []Event{AttemptFailed{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Cause: in.Cause, Message: in.Message, RetryAt: at}}
		}
	}
	return s.failForGood(i, in)
}

// failForGood is the verdict on a task whose attempts are used up.
func (s *State) failForGood(i int, in ActFailed) []Event {
	d := &s.def[i]
	failed := TaskFailed{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Cause: in.Cause, Message: in.Message, Policy: d.Policy}
	if s.handled(i) {
		failed.Verdict = v1alpha1.VerdictHandled
		return []Event{failed}
	}
	switch d.Policy {
	case v1alpha1.Ignore:
		failed.Verdict = v1alpha1.VerdictIgnored
	case v1alpha1.IgnoreChildren:
		failed.Verdict, failed.Children = v1alpha1.VerdictHandled, true
	case v1alpha1.Pause:
		return []Event{TaskPaused{Task: in.Task, Step: in.Step, Why: WhyFailed, Cause: in.Cause, Message: in.Message}}
	case v1alpha1.Rollback:
		failed.Verdict = v1alpha1.VerdictBlocking
		return []Event{failed, s.rollback(in.Task, in.Cause, in.Message)}
	default:
		failed.Verdict = v1alpha1.VerdictBlocking
		return []Event{failed, Aborted{Task: in.Task, Cause: in.Cause, Message: in.Message}}
	}
	return []Event{failed}
}

// handled says that a branch of the graph is there for this failure, and that nobody asked for another policy for this
// very task or its kind.
func (s *State) handled(i int) bool {
	if from := s.def[i].PolicyFrom; from == "task" || from == "kind" {
		return false
	}
	for _, c := range s.kids[i] {
		if s.def[c.task].Needs[c.need].On == v1alpha1.OnFailure {
			return true
		}
	}
	return false
}

// rollback is the verdict Rollback, or Abort if a point of no return has been passed.
func (s *State) rollback(task string, cause Cause, message string) Event {
	if passed := s.passedReturn(); passed != "" {
		return Aborted{Task: task, Cause: cause, Message: fmt.Sprintf("%s; not rolled back: %s is a point of no return", message, passed)}
	}
	return RollbackStarted{Task: task, Cause: cause, Message: message}
}

// passedReturn is a point of no return that has started.
func (s *State) passedReturn() string {
	for i := range s.def {
		if s.def[i].PointOfNoReturn && s.tasks[i].steps[s.def[i].Own()].started && !s.tasks[i].steps[s.def[i].Own()].undone {
			return s.def[i].Name
		}
	}
	return ""
}

func (s *State) undoBroke(in UndoBroke, now time.Time) []Event {
	i, ok := s.beingUndone(in.Task, in.Step)
	if !ok {
		return nil
	}
	t, retry := &s.tasks[i], undoRetry()
	if in.Final || t.undoAttempts > retry.Max {
		return []Event{UndoFailed{Task: in.Task, Step: in.Step, Message: in.Message, Release: !s.rollingBack()}}
	}
	return []Event{UndoAttemptFailed{
		Task: in.Task, Step: in.Step, Attempt: t.undoAttempts, Message: in.Message, RetryAt: now.Add(retry.Wait(t.undoAttempts)),
	}}
}
