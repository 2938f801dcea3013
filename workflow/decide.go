package workflow

import (
	"fmt"
	"time"

	"scute.dev/api/v1alpha1"
)

// Decide returns the events that follow from an input without changing the state. An error rejects
// an operator's command. Callers repeat it with a Tick until it returns no events.
func Decide(s *State, in Input, now time.Time) ([]Event, error) {
	if !s.IsDefined() {
		if _, command := in.(Tick); command {
			return nil, nil
		}
		return nil, fmt.Errorf("the log does not contain the run, or contains only part of its definition")
	}
	switch in := in.(type) {
	case Tick:
		return s.tick(in, now), nil
	case ActDone:
		return s.actDone(in, now), nil
	case ActFailed:
		return s.actFailed(in, now), nil
	case ActAwaitsOperator:
		if i, ok := s.runningTask(in.Task, in.Step, in.Attempt); ok && s.stopping == nil {
			return []Event{s.awaitOperator(i, in, now)}, nil
		} else if ok {
			return []Event{TaskInterrupted(in)}, nil
		}
	case ActRecorded:
		if _, ok := s.runningTask(in.Task, in.Step, in.Attempt); ok {
			return []Event{UndoRecorded{Task: in.Task, Step: in.Step, Undo: in.Undo, Adopted: in.Adopted}}, nil
		}
	case ActProgressed:
		if i, ok := s.runningTask(in.Task, in.Step, in.Attempt); ok && s.tasks[i].message != in.Message {
			return []Event{Progressed{Task: in.Task, Step: in.Step, Message: in.Message}}, nil
		}
	case UndoDone:
		if _, ok := s.undoingTask(in.Task, in.Step); ok {
			return []Event{Undone{Task: in.Task, Step: in.Step, Release: !s.isRollingBack(), KeptReason: in.KeptReason}}, nil
		}
	case UndoErrored:
		return s.undoErrored(in, now), nil
	case HandlerDone:
		for _, h := range s.handlers {
			if h.running && h.task == in.Task && s.OnFailure[h.handler].Name == in.Handler {
				return []Event{HandlerEnded(in)}, nil
			}
		}
	case VerifyDone:
		if s.verify && s.lost.n == 0 {
			return []Event{s.verifiedEvent(in.Gone)}, nil
		}
	default:
		return s.command(in, now)
	}
	return nil, nil
}

// verifiedEvent returns the Verified event for these tasks. It drops duplicates, and tasks that no
// longer count as succeeded.
func (s *State) verifiedEvent(gone []Gone) Event {
	var e Verified
	again := make(map[int]bool, len(gone))
	for _, g := range gone {
		if i, ok := s.index(g.Task); ok && s.tasks[i].phase == taskSucceeded && !again[i] {
			again[i] = true
			e.Gone = append(e.Gone, g)
		}
	}
	for _, i := range s.neededHolds(again) {
		e.Rerun = append(e.Rerun, s.def[i].Name)
	}
	return e
}

// runningTask returns the task if this attempt at this step is in flight.
func (s *State) runningTask(task, step string, attempt int) (int, bool) {
	i, ok := s.index(task)
	if !ok || s.tasks[i].phase != taskRunning || s.lost.has(i) || s.tasks[i].attempt() != attempt || s.def[i].Steps[s.tasks[i].step].Name != step {
		return 0, false
	}
	return i, true
}

func (s *State) undoingTask(task, step string) (int, bool) {
	i, ok := s.index(task)
	if !ok || s.tasks[i].undo != undoRunning || s.def[i].Steps[s.tasks[i].undoStep].Name != step {
		return 0, false
	}
	return i, true
}

func (s *State) actDone(in ActDone, now time.Time) []Event {
	i, ok := s.runningTask(in.Task, in.Step, in.Attempt)
	if !ok {
		return nil
	}
	if s.nextStep(i) >= 0 {
		return []Event{StepSucceeded{Task: in.Task, Step: in.Step, Output: in.Output}}
	}
	return append(s.expiredEdges(i, now), TaskSucceeded{Task: in.Task, Step: in.Step, Output: in.Output})
}

// expiredEdges returns events for outgoing edges that timed out, so that the task's end does not satisfy them.
func (s *State) expiredEdges(i int, now time.Time) []Event {
	if !s.clocksRun() {
		return nil
	}
	var events []Event
	for _, c := range s.children[i] {
		if s.tasks[c.task].edges[c.need].isExpired(now) {
			events = append(events, EdgeExpired{Task: s.def[c.task].Name, Need: s.def[i].Name})
		}
	}
	return events
}

func (s *State) actFailed(in ActFailed, now time.Time) []Event {
	i, ok := s.runningTask(in.Task, in.Step, in.Attempt)
	if !ok {
		return nil
	}
	if s.stopping != nil {
		return []Event{TaskInterrupted{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Message: in.Message}}
	}
	if in.Cause == CauseCancelled {
		return []Event{s.outcomeUnknown(i, in.Cause, "it was interrupted when its process stopped", now)}
	}
	return s.retryOrFail(i, in, now)
}

// awaitOperator returns an event that makes a step wait for an operator. The wait ends when the
// attempt or the total of all attempts would time out.
func (s *State) awaitOperator(i int, in ActAwaitsOperator, now time.Time) Event {
	t := &s.tasks[i]
	until := t.timeoutAt
	if until.IsZero() || !t.totalAt.IsZero() && t.totalAt.Before(until) {
		until = t.totalAt
	}
	if !until.IsZero() {
		until = until.Add(-now.Sub(s.clockTime(now)))
	}
	return TaskPaused{Task: in.Task, Step: in.Step, Reason: ReasonApproval, Message: in.Message, ClocksRun: true, ExpiresAt: until}
}

// expireQuestion fails a step whose question nobody answered in time.
func (s *State) expireQuestion(i int, now time.Time) []Event {
	t, d := &s.tasks[i], &s.def[i]
	return s.retryOrFail(i, ActFailed{
		Task: d.Name, Step: d.Steps[t.step].Name, Attempt: t.attempt(), Cause: CauseTimeout,
		Message: "no decision was made in time: " + t.message, Final: !t.totalAt.IsZero() && !now.Before(t.totalAt),
	}, now)
}

func (s *State) retryOrFail(i int, in ActFailed, now time.Time) []Event {
	t, step := &s.tasks[i], &s.def[i].Steps[s.tasks[i].step]
	if !in.Final && t.failures < step.Retry.Max {
		at := now.Add(step.Retry.DelayBefore(t.failures + 1))
		if t.totalAt.IsZero() || at.Before(t.totalAt) {
			return []Event{AttemptFailed{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Cause: in.Cause, Message: in.Message, RetryAt: at, Output: in.Output}}
		}
		in.Cause, in.Message = CauseTimeout, in.Message+"; no time is left for another attempt"
	}
	return s.failPermanently(i, in, now)
}

// outcomeUnknown returns a pause if the task may run at most once. Otherwise it returns a retry
// that does not count against the limit of retries.
func (s *State) outcomeUnknown(i int, cause Cause, message string, now time.Time) Event {
	t, d := &s.tasks[i], &s.def[i]
	step := d.Steps[t.step].Name
	if d.AtMostOnce && step == "" {
		return TaskPaused{Task: d.Name, Step: step, Reason: ReasonUnknown, Cause: cause, Message: atMostOnceMessage(message)}
	}
	if cause == CauseLost && t.lost > 0 {
		now = now.Add(lostDelay)
	}
	return AttemptFailed{Task: d.Name, Step: step, Attempt: t.attempt(), Cause: cause, Message: message, RetryAt: now}
}

func atMostOnceMessage(message string) string {
	return message + "; its outcome is unknown, and the task may run at most once"
}

// failPermanently returns the events of a permanent failure. Edges that have timed out expire
// first, so that the failure cannot satisfy them.
func (s *State) failPermanently(i int, in ActFailed, now time.Time) []Event {
	return append(s.expiredEdges(i, now), s.verdict(i, in, now)...)
}

func (s *State) verdict(i int, in ActFailed, now time.Time) []Event {
	d := &s.def[i]
	failed := TaskFailed{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Cause: in.Cause, Message: in.Message, Policy: d.Policy, Output: in.Output}
	if s.isHandled(i, now) {
		failed.Verdict = v1alpha1.VerdictHandled
		return []Event{failed}
	}
	switch d.Policy {
	case v1alpha1.Ignore:
		failed.Verdict = v1alpha1.VerdictIgnored
	case v1alpha1.IgnoreChildren:
		failed.Verdict, failed.SkipsChildren = v1alpha1.VerdictHandled, true
	case v1alpha1.FailurePause:
		return []Event{TaskPaused{Task: in.Task, Step: in.Step, Reason: ReasonFailed, Cause: in.Cause, Message: in.Message, Output: in.Output}}
	default:
		failed.Verdict = v1alpha1.VerdictBlocking
		return []Event{failed, s.blockingEvent(i, in.Cause, in.Message)}
	}
	return []Event{failed}
}

func (s *State) blockingEvent(i int, cause Cause, message string) Event {
	if s.def[i].Policy == v1alpha1.Rollback {
		return s.rollback(s.def[i].Name, cause, message)
	}
	return Aborted{Task: s.def[i].Name, Cause: cause, Message: message}
}

// isHandled reports whether a branch handles the task's failure. It returns false if the task, its
// kind or its type has its own failure policy, which takes precedence. A branch that was skipped or
// has timed out does not count.
func (s *State) isHandled(i int, now time.Time) bool {
	if s.def[i].ownPolicyText() != "" {
		return false
	}
	for _, c := range s.children[i] {
		e := &s.tasks[c.task].edges[c.need]
		if s.def[c.task].Needs[c.need].On != v1alpha1.OnFailure || s.tasks[c.task].phase == taskSkipped || e.state != edgeOpen {
			continue
		}
		if !s.clocksRun() || !e.isExpired(now) {
			return true
		}
	}
	return false
}

// rollback returns the event that starts a rollback, or Aborted if a point of no return has been
// passed.
func (s *State) rollback(task string, cause Cause, message string) Event {
	if passed := s.passedPointOfNoReturn(); passed != "" {
		return Aborted{Task: task, Cause: cause, Message: fmt.Sprintf("%s; not rolled back: %s is a point of no return", message, passed)}
	}
	return RollbackStarted{Task: task, Cause: cause, Message: message}
}

func (s *State) passedPointOfNoReturn() string {
	for i := range s.def {
		if s.def[i].PointOfNoReturn && s.tasks[i].steps[s.def[i].OwnStep()].started && !s.tasks[i].steps[s.def[i].OwnStep()].undone {
			return s.def[i].Name
		}
	}
	return ""
}

func (s *State) undoErrored(in UndoErrored, now time.Time) []Event {
	i, ok := s.undoingTask(in.Task, in.Step)
	if !ok {
		return nil
	}
	t, retry := &s.tasks[i], undoRetry()
	if in.Final || t.undoAttempts > retry.Max {
		return []Event{UndoFailed{Task: in.Task, Step: in.Step, Message: in.Message, Release: !s.isRollingBack()}}
	}
	return []Event{UndoAttemptFailed{
		Task: in.Task, Step: in.Step, Attempt: t.undoAttempts, Message: in.Message, RetryAt: now.Add(retry.DelayBefore(t.undoAttempts)),
	}}
}
