package workflow

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
)

// Decide returns the events that follow from an input, in order. It does not change the state. An error refuses an operator's command, and says which
// commands are possible. Callers call it with a Tick until it returns no events.
func Decide(s *State, in Input, now time.Time) ([]Event, error) {
	if !s.Known() {
		if _, command := in.(Tick); command {
			return nil, nil
		}
		return nil, fmt.Errorf("the run is not in the log, or not all of its definition")
	}
	if outcome(in) && s.ended != nil {
		return nil, nil // too late
	}
	switch in := in.(type) {
	case Tick:
		return s.tick(in, now), nil
	case ActDone:
		return s.actDone(in, now), nil
	case ActFailed:
		return s.actFailed(in, now), nil
	case ActAsks:
		if i, ok := s.acting(in.Task, in.Step, in.Attempt); ok && s.stopping == nil {
			return []Event{s.asks(i, in, now)}, nil
		} else if ok {
			return []Event{TaskInterrupted(in)}, nil
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
			return []Event{Undone{Task: in.Task, Step: in.Step, Release: !s.rollingBack(), Kept: in.Kept}}, nil
		}
	case UndoBroke:
		return s.undoBroke(in, now), nil
	case HandlerDone:
		for _, h := range s.handlers {
			if h.running && h.task == in.Task && s.OnFailure[h.handler].Name == in.Handler {
				return []Event{HandlerEnded(in)}, nil
			}
		}
	case VerifyDone:
		if s.verify && s.lost.n == 0 {
			return []Event{s.verified(s.stillGone(in.Gone))}, nil
		}
	default:
		return s.command(in, now)
	}
	return nil, nil
}

// outcome reports whether an input is the result of an effect.
func outcome(in Input) bool {
	switch in.(type) {
	case ActDone, ActFailed, ActAsks, ActRecords, ActSays, UndoDone, UndoBroke, HandlerDone, VerifyDone:
		return true
	default:
		return false
	}
}

// stillGone returns the elements whose steps are still done, each task once.
func (s *State) stillGone(list []Gone) []Gone {
	var gone []Gone
	for _, g := range list {
		i, ok := s.index(g.Task)
		if ok && s.tasks[i].phase == taskSucceeded && !slices.ContainsFunc(gone, func(o Gone) bool { return o.Task == g.Task }) {
			gone = append(gone, g)
		}
	}
	return gone
}

func (s *State) verified(gone []Gone) Event {
	again := make(map[int]bool, len(gone))
	for _, g := range gone {
		i, _ := s.index(g.Task)
		again[i] = true
	}
	e := Verified{Gone: gone}
	for _, i := range s.holdsNeeded(again) {
		e.Rerun = append(e.Rerun, s.def[i].Name)
	}
	return e
}

// acting returns the task whose attempt is in flight.
func (s *State) acting(task, step string, attempt int) (int, bool) {
	i, ok := s.index(task)
	if !ok || s.tasks[i].phase != taskRunning || s.lost.has(i) || s.tasks[i].attempt() != attempt || s.def[i].Steps[s.tasks[i].step].Name != step {
		return 0, false
	}
	return i, true
}

func (s *State) beingUndone(task, step string) (int, bool) {
	i, ok := s.index(task)
	if !ok || s.tasks[i].undo != undoRunning || s.def[i].Steps[s.tasks[i].undoStep].Name != step {
		return 0, false
	}
	return i, true
}

func (s *State) actDone(in ActDone, now time.Time) []Event {
	i, ok := s.acting(in.Task, in.Step, in.Attempt)
	if !ok {
		return nil
	}
	if s.nextStep(i) >= 0 {
		return []Event{StepSucceeded{Task: in.Task, Step: in.Step, Output: in.Output}}
	}
	return append(s.tooLate(i, now), TaskSucceeded{Task: in.Task, Step: in.Step, Output: in.Output})
}

// tooLate returns events for the edges of a task that have timed out, so that its end does not satisfy them.
func (s *State) tooLate(i int, now time.Time) []Event {
	if !s.goesOn() {
		return nil
	}
	var events []Event
	for _, c := range s.kids[i] {
		if s.tasks[c.task].edges[c.need].late(now) {
			events = append(events, EdgeExpired{Task: s.def[c.task].Name, Need: s.def[i].Name})
		}
	}
	return events
}

// actFailed returns the events that follow from an attempt that did not succeed.
func (s *State) actFailed(in ActFailed, now time.Time) []Event {
	i, ok := s.acting(in.Task, in.Step, in.Attempt)
	if !ok {
		return nil
	}
	if s.stopping != nil {
		return []Event{TaskInterrupted{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Message: in.Message}}
	}
	if in.Cause == CauseCancelled {
		return []Event{s.unclear(i, in.Cause, "it was cancelled in flight", now)}
	}
	return s.failed(i, in, now)
}

// asks returns the event with which a step waits for an operator, until its attempt, or all attempts, would have timed out.
func (s *State) asks(i int, in ActAsks, now time.Time) Event {
	t := &s.tasks[i]
	until := t.timeoutAt
	if until.IsZero() || !t.totalAt.IsZero() && t.totalAt.Before(until) {
		until = t.totalAt
	}
	if !until.IsZero() {
		until = until.Add(-now.Sub(s.frozen(now)))
	}
	return TaskPaused{Task: in.Task, Step: in.Step, Why: WhyApproval, Message: in.Message, ClocksRun: true, ExpiresAt: until}
}

// expire returns the events with which a step fails that nobody has decided about in time.
func (s *State) expire(i int, now time.Time) []Event {
	t, d := &s.tasks[i], &s.def[i]
	return s.failed(i, ActFailed{
		Task: d.Name, Step: d.Steps[t.step].Name, Attempt: t.attempt(), Cause: CauseTimeout,
		Message: "nobody decided in time: " + t.message, Final: !t.totalAt.IsZero() && !now.Before(t.totalAt),
	}, now)
}

// failed returns another attempt, or the verdict of the task's policy.
func (s *State) failed(i int, in ActFailed, now time.Time) []Event {
	t, step := &s.tasks[i], &s.def[i].Steps[s.tasks[i].step]
	if !in.Final && t.failures < step.Retry.Max {
		at := now.Add(step.Retry.Wait(t.failures + 1))
		if t.totalAt.IsZero() || at.Before(t.totalAt) {
			return []Event{AttemptFailed{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Cause: in.Cause, Message: in.Message, RetryAt: at, Output: in.Output}}
		}
		in.Cause, in.Message = CauseTimeout, in.Message+"; no time is left for another attempt"
	}
	return s.failForGood(i, in, now)
}

// unclear returns the event for an attempt with an unknown outcome: another attempt, which does not count, or a failure if the task may run only once.
func (s *State) unclear(i int, cause Cause, message string, now time.Time) Event {
	t, d := &s.tasks[i], &s.def[i]
	step := d.Steps[t.step].Name
	if d.AtMostOnce && step == "" {
		return TaskPaused{Task: d.Name, Step: step, Why: WhyUnknown, Cause: cause, Message: onlyOnce(message)}
	}
	if cause == CauseLost && t.lost > 0 {
		now = now.Add(lostWait)
	}
	return AttemptFailed{Task: d.Name, Step: step, Attempt: t.attempt(), Cause: cause, Message: message, RetryAt: now}
}

func onlyOnce(message string) string {
	return "it was started, " + message + ", and its outcome is unknown; it may run at most once"
}

// failForGood returns the verdict on a task whose attempts are used up, after events for the edges that it can no longer satisfy.
func (s *State) failForGood(i int, in ActFailed, now time.Time) []Event {
	return append(s.tooLate(i, now), s.verdict(i, in, now)...)
}

func (s *State) verdict(i int, in ActFailed, now time.Time) []Event {
	d := &s.def[i]
	failed := TaskFailed{Task: in.Task, Step: in.Step, Attempt: in.Attempt, Cause: in.Cause, Message: in.Message, Policy: d.Policy, Output: in.Output}
	if s.handled(i, now) {
		failed.Verdict = v1alpha1.VerdictHandled
		return []Event{failed}
	}
	switch d.Policy {
	case v1alpha1.Ignore:
		failed.Verdict = v1alpha1.VerdictIgnored
	case v1alpha1.IgnoreChildren:
		failed.Verdict, failed.Children = v1alpha1.VerdictHandled, true
	case v1alpha1.FailurePause:
		return []Event{TaskPaused{Task: in.Task, Step: in.Step, Why: WhyFailed, Cause: in.Cause, Message: in.Message, Output: in.Output}}
	default:
		failed.Verdict = v1alpha1.VerdictBlocking
		return []Event{failed, s.blocks(i, in.Cause, in.Message)}
	}
	return []Event{failed}
}

// blocks returns the verdict on the run that follows from the failure of a task.
func (s *State) blocks(i int, cause Cause, message string) Event {
	if s.def[i].Policy == v1alpha1.Rollback {
		return s.rollback(s.def[i].Name, cause, message)
	}
	return Aborted{Task: s.def[i].Name, Cause: cause, Message: message}
}

// handled reports whether a branch of the graph handles the failure, and the task, its kind and the type of its objects have no policy. A branch that
// was skipped, or whose edge has timed out, does not handle it.
func (s *State) handled(i int, now time.Time) bool {
	if s.def[i].OwnPolicy() != "" {
		return false
	}
	for _, c := range s.kids[i] {
		e := &s.tasks[c.task].edges[c.need]
		if s.def[c.task].Needs[c.need].On != v1alpha1.OnFailure || s.tasks[c.task].phase == taskSkipped || e.state != edgeOpen {
			continue
		}
		if !s.goesOn() || !e.late(now) {
			return true
		}
	}
	return false
}

// rollback returns the verdict Rollback, or Abort if a point of no return has been passed.
func (s *State) rollback(task string, cause Cause, message string) Event {
	if passed := s.passedReturn(); passed != "" {
		return Aborted{Task: task, Cause: cause, Message: fmt.Sprintf("%s; not rolled back: %s is a point of no return", message, passed)}
	}
	return RollbackStarted{Task: task, Cause: cause, Message: message}
}

// passedReturn returns a task that is a point of no return and has started, or "".
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
