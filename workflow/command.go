package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

func (s *State) command(in Input, now time.Time) ([]Event, error) {
	switch in := in.(type) {
	case PauseRun:
		switch {
		case s.Finished():
			return nil, fmt.Errorf("the run has ended: it is %s", s.ended.Phase)
		case s.ended != nil:
			return nil, fmt.Errorf("the run is %s: it starts nothing until it is resumed", s.ended.Phase)
		case s.stopping != nil:
			return nil, fmt.Errorf("the run is stopping: it cannot be paused")
		case s.paused:
			return nil, nil
		}
		return []Event{Paused(in)}, nil
	case ResumeRun:
		return s.resume(in, now)
	case AbortRun:
		return s.abort(in)
	case HoldTask:
		return s.hold(in)
	case ReleaseTask:
		i, ok := s.index(in.Task)
		if !ok {
			return nil, s.unknownTask(in.Task)
		}
		if s.tasks[i].phase != taskPaused || s.tasks[i].pauseReason != ReasonHeld {
			return nil, fmt.Errorf("task %q is %s, not held by an operator: use decide instead (retry, ignore, ignore-children, succeed)", in.Task,
				s.taskPhase(i))
		}
		return []Event{TaskReleased(in)}, nil
	case Decision:
		return s.decision(in, now)
	case Migrate:
		return s.migrate(in)
	default:
		return nil, nil
	}
}

func (s *State) abort(in AbortRun) ([]Event, error) {
	message := "aborted by an operator" + colon(in.Reason)
	switch passed := s.passedPointOfNoReturn(); {
	case !in.Rollback && (s.ended != nil || s.stopping != nil), s.isRollingBack():
		return nil, nil
	case !in.Rollback:
		return []Event{Aborted{Cause: CauseOperator, Message: message}}, nil
	case s.Finished():
		return nil, fmt.Errorf("the run has ended: it is %s", s.ended.Phase)
	case passed != "":
		return nil, fmt.Errorf("%s is a point of no return and has started: abort the run without a rollback", passed)
	default:
		return []Event{RollbackStarted{Cause: CauseOperator, Message: message}}, nil
	}
}

func (s *State) resume(in ResumeRun, now time.Time) ([]Event, error) {
	var since time.Time
	switch {
	case s.Finished():
		return nil, fmt.Errorf("the run has ended: it is %s; start another run", s.ended.Phase)
	case s.isRollingBack():
		if !in.ProcessDied {
			return nil, fmt.Errorf("the run is rolling back: use decide for the tasks that could not be undone (retry-undo, mark-undone, abandon)")
		}
		return nil, nil
	case s.stopping != nil && s.ended == nil && !in.ProcessDied:
		return nil, fmt.Errorf("the run is stopping: resume it when it is %s", v1alpha1.RunAborted)
	case s.ended != nil || s.paused:
		since = s.clockTime(now)
	case in.ProcessDied || s.Stranded != "":
		if s.awaitsOperator() {
			since = s.lastAt
		}
	case CurrentPhase(s) == v1alpha1.RunPaused:
		_, advice := s.question()
		return nil, fmt.Errorf("%s waits for an operator: %s", view.First(s.waitingTasks()), advice)
	default:
		return nil, nil // it is already running
	}
	e := Resumed{Reason: in.Reason}
	if stood := now.Sub(since); stood > 0 && !since.IsZero() {
		e.Shift = Duration(stood)
	}
	if s.stopping != nil && s.stopping.cause == CauseDeadline { // restart the deadline: otherwise the run would be stopped again at once
		e.Shift = max(e.Shift, Duration(now.Sub(s.deadline))+s.Deadline)
	}
	var once []Event
	for _, i := range s.rerun() {
		if t, d := &s.tasks[i], &s.def[i]; t.phase == taskInterrupted && d.AtMostOnce && d.Steps[t.step].Name == "" {
			once = append(once, TaskPaused{Task: d.Name, Reason: ReasonUnknown, Cause: CauseCancelled, Message: atMostOnceMessage("it was interrupted")})
			continue
		}
		e.Rerun = append(e.Rerun, s.def[i].Name)
	}
	return append(once, e), nil // in this order, so that no task stays interrupted if only a prefix is stored
}

// rerun returns the tasks that run again when the run is resumed. It omits paused tasks, which wait
// for a decision instead.
func (s *State) rerun() []int {
	again := make(map[int]bool)
	for i := range s.tasks {
		switch t := &s.tasks[i]; {
		case t.removed:
		case t.phase == taskInterrupted, t.phase == taskFailed && t.verdict == v1alpha1.VerdictBlocking,
			t.phase == taskSucceeded && (s.def[i].Always || s.holdReleased(i)):
			again[i] = true
		}
	}
	return slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(again)), s.neededHolds(again))))
}

// holdReleased reports whether a hold of the task was released, completely or in part, by the end
// of the run rather than by another task.
func (s *State) holdReleased(i int) bool {
	t := &s.tasks[i]
	for n := range s.def[i].Steps {
		if s.def[i].Steps[n].removed {
			continue
		}
		if (s.def[i].Steps[n].Holds && t.steps[n].undone || t.undo != undoNone && t.undoStep == n) && !(n == s.def[i].OwnStep() && s.released(i)) {
			return true
		}
	}
	return false
}

func (s *State) hold(in HoldTask) ([]Event, error) {
	i, ok := s.index(in.Task)
	switch {
	case !ok:
		return nil, s.unknownTask(in.Task)
	case s.ended != nil || s.stopping != nil:
		return nil, fmt.Errorf("the run is %s: there is nothing to hold", CurrentPhase(s))
	case s.tasks[i].phase == taskPaused:
		return nil, nil
	case s.tasks[i].phase != taskPending:
		return nil, fmt.Errorf("task %q is %s: hold a task that has not started, or pause the run", in.Task, s.taskPhase(i))
	}
	return []Event{TaskPaused{Task: in.Task, Reason: ReasonHeld, Message: "held by an operator: " + in.Reason}}, nil
}

func (s *State) decision(in Decision, now time.Time) ([]Event, error) {
	i, ok := s.index(in.Task)
	if !ok {
		return nil, s.unknownTask(in.Task)
	}
	t := &s.tasks[i]
	if in.Question > 0 && in.Question != t.questions {
		return nil, fmt.Errorf("the decision answers question %d of task %q, but the task now asks question %d: read the new question, then decide",
			in.Question, in.Task, t.questions)
	}
	d := Decided{Task: in.Task, Question: in.Question, Action: in.Action, Output: in.Output, With: in.With, Reason: in.Reason}
	if in.Action == ActSucceed && t.phase == taskPaused && t.pauseReason == ReasonApproval {
		d.StepOnly = s.nextStep(i) >= 0
	}
	if in.With != nil && in.Action != ActRetry {
		return nil, fmt.Errorf("inputs can only be patched with the action retry")
	}
	if in.Output != nil && in.Action != ActSucceed {
		return nil, fmt.Errorf("an output can only be given with the action succeed")
	}
	switch in.Action {
	case ActRetryUndo, ActMarkUndone, ActAbandon:
		if t.undo != undoFailed {
			return nil, fmt.Errorf("task %q has no failed undo: it is %s", in.Task, s.taskPhase(i))
		}
		if in.Action == ActAbandon && !s.isStuck() {
			return nil, fmt.Errorf("the run is still rolling back: abandon it when it is %s", v1alpha1.RunRollbackFailed)
		}
		if in.Action == ActAbandon {
			return []Event{d, Ended{Phase: v1alpha1.RunFailed, Message: fmt.Sprintf("abandoned by an operator: %s: %s", in.Task, t.message)}}, nil
		}
		return []Event{d}, nil
	case ActRetry, ActSucceed, ActIgnore, ActIgnoreChildren, ActAbort, ActRollback:
	default:
		return nil, fmt.Errorf("unknown action %q: use retry, ignore, ignore-children, succeed, rollback, abort, retry-undo, mark-undone or abandon",
			in.Action)
	}
	if s.Finished() || s.isRollingBack() {
		return nil, fmt.Errorf("the run is %s: task %q accepts no more decisions", CurrentPhase(s), in.Task)
	}
	if !t.awaitsDecision() {
		return nil, fmt.Errorf("task %q is %s and does not wait for a decision%s", in.Task, s.taskPhase(i), s.waitingText())
	}
	switch in.Action {
	case ActRollback:
		if passed := s.passedPointOfNoReturn(); passed != "" {
			return nil, fmt.Errorf("%s is a point of no return and has started: the run can no longer be rolled back: use retry, ignore, succeed or abort",
				passed)
		}
		return []Event{d, RollbackStarted{Task: in.Task, Cause: CauseOperator, Message: cmp.Or(in.Reason, t.message)}}, nil
	case ActAbort:
		if s.stopping != nil {
			return nil, nil
		}
		return []Event{d, Aborted{Task: in.Task, Cause: CauseOperator, Message: cmp.Or(in.Reason, t.message)}}, nil
	}
	if !t.awaitingApproval || !s.clocksRun() {
		return []Event{d}, nil
	}
	if !t.expiresAt.IsZero() && !t.expiresAt.After(now) {
		return nil, fmt.Errorf("the question of task %q expired at %s: resume the run; the task then fails according to its failurePolicy", in.Task,
			t.expiresAt.Format(time.RFC3339))
	}
	return append(s.expiredEdges(i, now), d), nil
}

func (s *State) unknownTask(name string) error {
	names := make([]string, 0, len(s.def))
	for i := range s.def {
		names = append(names, s.def[i].Name)
	}
	slices.Sort(names)
	return fmt.Errorf("the run has no task %q; its tasks are %s", name, view.First(names))
}

func (s *State) waitingTasks() (names []string) {
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.phase == taskPaused || t.phase == taskFailed && t.verdict == v1alpha1.VerdictBlocking || t.undo == undoFailed {
			names = append(names, s.def[i].Name)
		}
	}
	return names
}

func (s *State) waitingText() string {
	if names := s.waitingTasks(); len(names) > 0 {
		return "; tasks that wait: " + view.First(names)
	}
	return ""
}
