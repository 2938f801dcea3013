package workflow

import (
	"time"

	"scute.dev/api/v1alpha1"
)

// undoRetry returns the retry policy of undos, after which an undo waits for an operator.
func undoRetry() Retry {
	return Retry{Max: 5, Delay: Duration(time.Second), Factor: 2, MaxDelay: Duration(30 * time.Second)}
}

// UndoTimeout limits one attempt to undo a step.
const UndoTimeout = 10 * time.Minute

// startUndo returns the event that starts an undo of a step. If the process died during the last
// permitted attempt, it returns UndoFailed.
func (s *State) startUndo(i, n int, release bool) Event {
	t, d := &s.tasks[i], &s.def[i]
	if retry := undoRetry(); t.undoAttempts > retry.Max {
		return UndoFailed{
			Task: d.Name, Step: d.Steps[n].Name, Message: "all attempts are used up, and the process ended during the last one",
			Release: release,
		}
	}
	return UndoStarted{Task: d.Name, Step: d.Steps[n].Name, Attempt: t.undoAttempts + 1, Release: release}
}

func (s *State) applyUndo(i int, e Event, at time.Time) {
	t := &s.tasks[i]
	switch e := e.(type) {
	case UndoStarted:
		t.undoStep, t.undoAttempts = s.stepIndex(i, e.Step), e.Attempt
		s.setUndo(i, undoRunning)
	case UndoAttemptFailed:
		t.message, t.retryFrom, t.retryAt = e.Message, at, e.RetryAt
		s.setUndo(i, undoWaiting)
		s.addAlarm(e.RetryAt, i, alarmUndo)
	case Undone:
		t.undoStep = s.stepIndex(i, e.Step)
		t.kept = t.kept || e.KeptReason != ""
		s.stepUndone(i, e.KeptReason)
	case UndoFailed:
		t.message = e.Message
		t.questions++
		s.setUndo(i, undoFailed)
		s.callHandlers(e.Task, CauseError, e.Message)
	}
}

func (s *State) setUndo(i int, to undoState) {
	t := &s.tasks[i]
	s.undoCounts[t.undo]--
	s.undoCounts[to]++
	t.undo = to
	s.undoing.put(i, to == undoRunning)
	s.undoable.put(i, to == undoDue)
}

// undoLost restarts an undo whose process died. If a rollback interrupted a release, the undo first
// waits for the task's descendants, as all undos do.
func (s *State) undoLost(i int) {
	if !s.isRollingBack() {
		s.setUndo(i, undoDue)
		return
	}
	s.setUndo(i, undoNone)
	if s.stopping.undoPrepared {
		s.updateUndoable(i)
	}
}

func (s *State) stepUndone(i int, kept string) {
	t := &s.tasks[i]
	t.steps[t.undoStep].undone, t.undoAttempts = true, 0
	s.setUndo(i, undoNone)
	s.holding.put(i, s.heldStep(i) >= 0)
	if !s.isRollingBack() { // the run only released a hold
		return
	}
	s.recordReacquired(i, t.undoStep)
	if kept != "" {
		t.message = kept
	}
	switch over := s.nextUndo(i) < 0; {
	case over && t.kept:
		s.setUndo(i, undoKept)
	case over:
		t.message = ""
		s.setUndo(i, undoDone)
	}
	if s.stopping.undoPrepared {
		s.updateUndoable(i)
	}
}

// nextUndo returns the last step that still has to be undone, or -1.
func (s *State) nextUndo(i int) int {
	t := &s.tasks[i]
	for n := len(t.steps) - 1; n >= 0; n-- {
		if t.steps[n].started && !t.steps[n].undone {
			return n
		}
	}
	return -1
}

// heldStep returns the first step that still holds something, or -1.
func (s *State) heldStep(i int) int {
	for n := range s.def[i].Steps {
		if step := &s.tasks[i].steps[n]; s.def[i].Steps[n].Holds && step.started && !step.undone {
			return n
		}
	}
	return -1
}

func (s *State) isRollingBack() bool { return s.stopping != nil && s.stopping.rollback }

// beginUndo starts the undos of a rollback once nothing is in flight. Each task is undone after all
// its descendants.
func (s *State) beginUndo() {
	s.stopping.undoPrepared = true
	s.undoRemaining, s.undoStage = len(s.tasks), [3]int{}
	for i := range s.tasks {
		t := &s.tasks[i]
		t.unsettled, t.settled = len(s.children[i])+len(s.removedOrder.children[i]), false
		s.undoStage[s.def[i].Stage]++
		if t.undo != undoNone && t.undo != undoRunning { // the rollback retries a release that waited or failed
			t.undoAttempts = 0
			s.setUndo(i, undoNone)
		}
	}
	for i := range s.tasks {
		if s.tasks[i].unsettled == 0 {
			s.updateUndoable(i)
		}
	}
}

// updateUndoable makes a task's undo due once the task's descendants are settled. If there is
// nothing to undo, it settles the task.
func (s *State) updateUndoable(i int) {
	t := &s.tasks[i]
	if t.settled || t.unsettled > 0 || t.undo != undoNone && t.undo != undoDone && t.undo != undoKept {
		return
	}
	if s.nextUndo(i) < 0 {
		s.settle(i)
		return
	}
	for later := s.def[i].Stage + 1; later <= StagePost; later++ {
		if s.undoStage[later] > 0 {
			return // repeated when that stage is settled
		}
	}
	s.setUndo(i, undoDue)
}

func (s *State) settle(i int) {
	t := &s.tasks[i]
	t.settled = true
	s.undoRemaining--
	stage := s.def[i].Stage
	s.undoStage[stage]--
	for _, e := range t.edges {
		s.childSettled(e.parent)
	}
	for _, p := range s.removedOrder.parents[i] {
		s.childSettled(p)
	}
	if s.undoStage[stage] == 0 && stage > StagePre {
		for j := range s.def {
			if s.def[j].Stage < stage {
				s.updateUndoable(j)
			}
		}
	}
}

func (s *State) childSettled(parent int) {
	if s.tasks[parent].unsettled--; s.tasks[parent].unsettled == 0 {
		s.updateUndoable(parent)
	}
}

// isStuck reports whether the undos can continue only after an operator's decision.
func (s *State) isStuck() bool {
	if s.undoCounts[undoFailed] == 0 || s.inFlight() > 0 || len(s.handlers) > 0 || s.undoable.n > 0 || len(*s.clock(alarmUndo)) > 0 {
		return false
	}
	if s.isRollingBack() {
		return s.stopping.undoPrepared && s.phaseCounts[taskRetrying] == 0
	}
	for i := range s.holding.all() { // these holds are released next
		if s.tasks[i].undo == undoNone {
			return false
		}
	}
	return true
}

// undoPhase returns the phase of a task's undo, or "" if no undo of the task has begun.
func undoPhase(t *taskState) taskPhase {
	switch t.undo {
	case undoRunning, undoWaiting:
		return v1alpha1.TaskUndoing
	case undoDue:
		if t.undoAttempts > 0 {
			return v1alpha1.TaskUndoing
		}
		return ""
	case undoDone:
		return v1alpha1.TaskUndone
	case undoKept:
		return v1alpha1.TaskKept
	case undoFailed:
		return v1alpha1.TaskUndoFailed
	default:
		return ""
	}
}
