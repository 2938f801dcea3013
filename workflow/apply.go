package workflow

import (
	"encoding/json"
	"time"

	"scute.dev/api/v1alpha1"
)

// ClaimedBy returns the process that last claimed the run.
func (s *State) ClaimedBy() string { return s.Holder }

// Apply applies an event. It never fails: it ignores an event that does not fit the state.
func (s *State) Apply(e Event, at time.Time) {
	s.stopClocks(e, at)
	s.lastAt = at
	switch e := e.(type) {
	case Defined:
		s.applyPart(e)
	case Started:
		if s.Hash == "" && e.Hash != "" && s.remainingParts == 0 && isWellFormed(s.parts) {
			s.Header, s.Hash, s.Origin, s.deadline = e.Header, e.Hash, e.Origin, e.Deadline
			s.load(s.parts)
			s.startedAt = at
		}
		s.parts = nil
	case Migrated:
		if s.Hash != "" && e.Hash != "" && s.remainingParts == 0 && isWellFormed(s.parts) {
			s.applyMigrated(e, at)
		}
		s.parts = nil
	default:
		if s.Hash != "" {
			s.applyRun(e, at)
		}
	}
	s.dropStale()
	if s.isRollingBack() && !s.stopping.undoPrepared && s.running.n == 0 {
		s.beginUndo()
	}
}

// stopClocks moves all deadlines by the time since the last event if only an operator could make
// the run continue. It ignores a Resumed event, which carries its own shift.
func (s *State) stopClocks(e Event, at time.Time) {
	if _, resumed := e.(Resumed); !resumed && s.phaseCounts[taskPaused] > 0 && !s.paused && s.awaitsOperator() {
		s.shiftDeadlines(at.Sub(s.lastAt))
	}
}

// isWellFormed checks the properties of tasks on which this package relies, because Build may not
// have written the log.
func isWellFormed(tasks []Task) bool {
	for i := range tasks {
		if len(tasks[i].Steps) == 0 || tasks[i].Stage < StagePre || tasks[i].Stage > StagePost {
			return false
		}
	}
	return true
}

func (s *State) applyPart(e Defined) {
	if e.Part == 0 {
		s.parts, s.nextPart = nil, 0
	}
	if e.Part != s.nextPart || e.Part >= e.Of {
		return
	}
	s.parts = append(s.parts, e.Tasks...)
	s.nextPart, s.remainingParts = e.Part+1, e.Of-e.Part-1
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
			if i, ok := s.index(g.Task); ok && s.tasks[i].phase == taskSucceeded {
				s.reopenAll(i, at)
			}
		}
		s.resetHolds(e.Rerun)
		for _, name := range e.Rerun {
			if i, ok := s.index(name); ok && s.tasks[i].ended() {
				s.reopen(i, at)
			}
		}
	case Aborted:
		s.applyStop(&stop{task: e.Task, cause: e.Cause, message: e.Message})
	case RollbackStarted:
		if s.Finished() {
			return
		}
		s.ended = nil
		s.applyStop(&stop{rollback: true, task: e.Task, cause: e.Cause, message: e.Message})
	case Ended:
		s.ended, s.endedAt, s.verify = &e, at, false
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
	for i := range s.undoing.backward() {
		s.undoLost(i)
	}
	s.handling = 0
	for i := range s.handlers {
		if h := &s.handlers[i]; h.running {
			h.running = false
			h.lost++
		}
	}
}

func (s *State) applyResumed(e Resumed, at time.Time) {
	if s.Finished() || s.isRollingBack() {
		return
	}
	s.paused, s.pausedReason, s.Stranded = false, "", ""
	s.ended, s.stopping = nil, nil
	s.shiftDeadlines(time.Duration(e.Shift))
	s.resetHolds(e.Rerun)
	for _, name := range e.Rerun {
		i, ok := s.index(name)
		switch {
		case !ok:
		case s.tasks[i].phase == taskSucceeded && s.def[i].Always:
			s.reopenAll(i, at)
		default: // continue with the current step; released holds are acquired and released once more
			s.reopen(i, at)
		}
	}
	for i := range s.holding.all() { // the end of the run repeats a release that was in progress
		s.tasks[i].undoAttempts = 0
		s.setUndo(i, undoNone)
	}
	s.verify = true
}

func (s *State) reopenAll(i int, at time.Time) {
	for n := range s.tasks[i].steps {
		s.tasks[i].steps[n].done = false
	}
	s.reopen(i, at)
}

// applyStop stores the verdict on the run. A later verdict is ignored, except that an aborted run
// may still be rolled back. The failure handlers were called at the first verdict.
func (s *State) applyStop(v *stop) {
	switch {
	case s.stopping == nil:
		s.callHandlers("", v.cause, v.message)
	case s.stopping.rollback || !v.rollback:
		return
	}
	s.stopping, s.verify = v, false
}

func (s *State) callHandlers(task string, cause Cause, message string) {
	if s.firstError == "" && cause != CauseOperator {
		s.firstError = because(task, message)
	}
	attempt := 0
	if i, ok := s.index(task); ok {
		attempt = s.tasks[i].attempt()
	}
	for h := range s.OnFailure {
		s.handlerRuns++
		s.handlers = append(s.handlers, handling{handler: h, task: task, cause: cause, message: message, attempt: attempt, number: s.handlerRuns})
	}
}

func (s *State) setHandler(name, task string, running bool) {
	for i, h := range s.handlers {
		if s.OnFailure[h.handler].Name != name || h.task != task || h.running == running {
			continue
		}
		if running {
			s.handlers[i].running = true
			s.handling++
		} else {
			s.handlers = append(s.handlers[:i:i], s.handlers[i+1:]...)
			s.handling--
		}
		return
	}
}

func (s *State) applyTask(e Event, at time.Time) {
	i, ok := s.index(e.task())
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
		t.message, t.retryFrom, t.retryAt = e.Message, s.clockTime(at), e.RetryAt.Add(-at.Sub(s.clockTime(at)))
		switch e.Cause {
		case CauseLost:
			t.lost++
		case CauseCancelled:
			t.lost = 0 // the process shut down in an orderly way
		default:
			t.failures++
			t.lost, t.recreate = 0, s.def[i].Steps[t.step].Retry.Recreate
		}
		s.recordOutput(i, e.Step, e.Output)
		s.setPhase(i, taskRetrying, "", at)
		s.addAlarm(t.retryAt, i, alarmRetry)
	case StepSucceeded:
		s.applyStepSucceeded(i, e.Output, at)
	case TaskSucceeded:
		s.completeStep(t, e.Output)
		t.failures, t.lost, t.recreate, t.message, t.pauseReason = 0, 0, false, "", ""
		s.setPhase(i, taskSucceeded, v1alpha1.VerdictSatisfied, at)
	case TaskFailed:
		t.message, t.skipsChildren, t.recreate = e.Message, e.SkipsChildren, s.def[i].Steps[t.step].Retry.Recreate
		s.recordOutput(i, e.Step, e.Output)
		phase := taskFailed
		if e.Verdict == v1alpha1.VerdictIgnored {
			phase = taskIgnored
		}
		s.setPhase(i, phase, e.Verdict, at)
		s.callHandlers(e.Task, e.Cause, e.Message)
	case TaskPaused:
		t.message, t.pauseReason = e.Message, e.Reason
		s.recordOutput(i, e.Step, e.Output)
		s.setAwaitingApproval(i, e.ClocksRun, e.ExpiresAt)
		s.setPhase(i, taskPaused, "", at)
		if e.Reason == ReasonFailed {
			t.recreate = s.def[i].Steps[t.step].Retry.Recreate
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
			if x := &t.edges[n]; s.def[i].Needs[n].Task == e.Need && x.state == edgeOpen && !x.expires.IsZero() && !x.expires.After(at) {
				s.setEdge(child{i, n}, edgeUnsatisfiable)
				s.setBehind(child{i, n}, false)
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

func (s *State) applyStepSucceeded(i int, output json.RawMessage, at time.Time) {
	t := &s.tasks[i]
	s.completeStep(t, output)
	t.step, t.failures, t.lost, t.recreate, t.message, t.totalAt = max(s.nextStep(i), 0), 0, 0, false, "", time.Time{}
	s.setPhase(i, taskPending, "", at)
}

func (s *State) completeStep(t *taskState, output json.RawMessage) {
	t.steps[t.step].done, t.steps[t.step].firstAttempt, t.steps[t.step].output, t.steps[t.step].partial = true, 0, output, false
	s.outputs = s.outputs || output != nil
}

// recordOutput stores the output of a failed attempt. If there is none, the output of an earlier
// attempt is kept.
func (s *State) recordOutput(i int, step string, output json.RawMessage) {
	if output != nil {
		n := s.stepIndex(i, step)
		s.tasks[i].steps[n].output, s.tasks[i].steps[n].partial = output, true
		s.outputs = true
	}
}

func (s *State) applyStarted(i int, e TaskStarted, at time.Time) {
	t := &s.tasks[i]
	t.step = s.stepIndex(i, e.Step)
	step := &t.steps[t.step]
	if step.firstAttempt == 0 || step.undone {
		step.firstAttempt = e.Attempt
	}
	step.started, step.done, step.undone, step.attempt = true, false, false, e.Attempt
	if s.def[i].Steps[t.step].Name == "" {
		t.attempts++
	}
	if t.startedAt.IsZero() {
		t.startedAt = at
	}
	s.startEdges(i, at)
	if s.def[i].Steps[t.step].Holds {
		s.holding.put(i, true)
	}
	if t.rerunning && e.Step == "" {
		s.resetReleases(i, at)
	}
	t.timeoutAt, t.totalAt, t.message, t.kept = e.TimeoutAt, e.TotalAt, "", false
	s.setUndo(i, undoNone)
	s.setPhase(i, taskRunning, "", at)
}

func (s *State) applyDecided(i int, e Decided, at time.Time) {
	t := &s.tasks[i]
	switch e.Action {
	case ActRetry:
		if e.With != nil {
			t.steps[t.step].with = e.With
		}
		s.reopen(i, at)
	case ActSucceed:
		if e.StepOnly {
			t.pauseReason = ""
			s.applyStepSucceeded(i, e.Output, at)
			return
		}
		t.steps[s.def[i].OwnStep()].output, t.steps[s.def[i].OwnStep()].partial = e.Output, false
		s.outputs = s.outputs || e.Output != nil
		for n := range t.steps {
			t.steps[n].done, t.steps[n].firstAttempt = true, 0
		}
		t.message, t.pauseReason = "marked as succeeded by an operator", ""
		s.setPhase(i, taskSucceeded, v1alpha1.VerdictSatisfied, at)
	case ActIgnore:
		t.pauseReason = ""
		s.setPhase(i, taskIgnored, v1alpha1.VerdictIgnored, at)
	case ActIgnoreChildren:
		t.pauseReason, t.skipsChildren = "", true
		s.setPhase(i, taskFailed, v1alpha1.VerdictHandled, at)
	case ActRetryUndo:
		t.undoAttempts = 0
		s.setUndo(i, undoDue)
	case ActMarkUndone:
		s.stepUndone(i, "")
	case ActRollback, ActAbort, ActAbandon: // the next event has the effect
	}
}
