package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

// maxSkips limits the events of one decision; the next decision continues.
const maxSkips = 256

func (s *State) tick(in Tick, now time.Time) []Event {
	if s.ended != nil || s.Stranded != "" || s.Holder == "" {
		return nil
	}
	if s.lost.n > 0 {
		return s.lostAttempts(now)
	}
	if s.blocking > 0 && s.stopping == nil { // its process died before it stored the verdict
		for i := range s.tasks {
			if t := &s.tasks[i]; t.verdict == v1alpha1.VerdictBlocking {
				return []Event{s.blockingEvent(i, CauseError, t.message)}
			}
		}
	}
	free := in.Parallel - s.inFlight()
	if at := s.deadlineAt(); !at.IsZero() && !now.Before(at) && s.clocksRun() {
		return []Event{s.deadlineEvent()}
	}
	if started := s.startHandlers(&free); len(started) > 0 {
		return started
	}
	if s.stopping != nil {
		return s.stopEvents(free, now)
	}
	if s.paused || s.verify {
		return nil
	}
	if due := s.alarms(free, now); len(due) > 0 {
		return due
	}
	if skipped := s.skips(); len(skipped) > 0 {
		return skipped
	}
	if started := s.starts(free, now); len(started) > 0 {
		return started
	}
	if s.stageRemaining == [3]int{} {
		return s.finishEvents(free, now)
	}
	return nil
}

// LostLimit is the number of consecutive attempts that may be lost because their process died.
// After that, the task or failure handler fails, because it may be what kills the process.
const LostLimit = 3

// lostDelay is the delay before the retry of a lost attempt, from the second consecutive loss on.
// The first retry follows at once.
const lostDelay = 10 * time.Second

// lostAttempts returns events for attempts whose process died. Their retries do not count against
// the limit of retries.
func (s *State) lostAttempts(now time.Time) []Event {
	var events []Event
	for i := range s.lost.all() {
		t, d := &s.tasks[i], &s.def[i]
		step := d.Steps[t.step].Name
		switch {
		case s.stopping != nil:
			events = append(events, TaskInterrupted{Task: d.Name, Step: step, Attempt: t.attempt(), Message: "its process ended"})
		case t.lost+1 >= LostLimit && !(d.AtMostOnce && step == ""):
			failed := s.failPermanently(i, ActFailed{Task: d.Name, Step: step, Attempt: t.attempt(), Cause: CauseLost, Message: lostMessage(LostLimit)}, now)
			return append(events, failed...) // includes the verdict on the run; the next decision handles the remaining attempts
		default:
			events = append(events, s.outcomeUnknown(i, CauseLost, "its process ended", now))
		}
	}
	return events
}

func lostMessage(times int) string {
	return fmt.Sprintf("the process ended %d times in a row during this step, which may be the cause: check the memory limit of the process, and "+
		"how it ended", times)
}

func (s *State) deadlineEvent() Event {
	message := "the run's deadline of " + view.Duration(time.Duration(s.Deadline)) + " has passed"
	if s.Policy == v1alpha1.Rollback {
		return s.rollback("", CauseDeadline, message)
	}
	return Aborted{Cause: CauseDeadline, Message: message}
}

func (s *State) startHandlers(free *int) []Event {
	var events []Event
	for n, h := range s.handlers {
		if h.running || *free <= 0 || s.handledBefore(n) {
			continue
		}
		started := HandlerStarted{Handler: s.OnFailure[h.handler].Name, Task: h.task}
		events = append(events, started)
		if h.lost >= LostLimit {
			events = append(events, HandlerEnded{Handler: started.Handler, Task: h.task, Error: lostMessage(h.lost)})
			continue
		}
		*free--
	}
	return events
}

// handledBefore reports whether the same handler is still handling an earlier failure of the same
// task. If both ran at once, their events could not be distinguished.
func (s *State) handledBefore(n int) bool {
	h := s.handlers[n]
	return slices.ContainsFunc(s.handlers[:n], func(o handling) bool { return o.handler == h.handler && o.task == h.task })
}

// stopEvents returns the next events of an abort or a rollback.
func (s *State) stopEvents(free int, now time.Time) []Event {
	if s.running.n > 0 {
		return nil // these attempts are being cancelled
	}
	if waiting := s.interruptWaiting(); len(waiting) > 0 {
		return waiting
	}
	if !s.stopping.rollback {
		return s.endEvents(v1alpha1.RunAborted, s.stopReason(), free, now)
	}
	if len(s.handlers) > 0 {
		return nil // the handlers collect evidence that the undos would delete
	}
	if due := s.undoAlarms(free, now); len(due) > 0 {
		return due
	}
	if events := s.undos(free); len(events) > 0 {
		return events
	}
	if s.undoRemaining == 0 && s.inFlight() == 0 {
		return []Event{Ended{Phase: v1alpha1.RunRolledBack, Message: s.stopReason() + s.keptTasks()}}
	}
	return nil
}

func (s *State) interruptWaiting() []Event {
	var events []Event
	for i := 0; s.phaseCounts[taskRetrying] > 0 && i < len(s.tasks); i++ {
		if t := &s.tasks[i]; t.phase == taskRetrying {
			events = append(events, TaskInterrupted{Task: s.def[i].Name, Step: s.def[i].Steps[t.step].Name, Attempt: t.attempt(), Message: t.message})
		}
	}
	return events
}

func (s *State) undos(free int) []Event {
	var events []Event
	for i := range s.undoable.backward() {
		if free <= 0 {
			break
		}
		n := s.nextUndo(i)
		if n < 0 {
			continue
		}
		step, d := &s.tasks[i].steps[n], &s.def[i].Steps[n]
		switch {
		case step.adopted:
			events = append(events, Undone{Task: s.def[i].Name, Step: d.Name, NothingReason: "it already existed"})
		case d.Undo != nil && d.Undo.None:
			events = append(events, Undone{Task: s.def[i].Name, Step: d.Name, NothingReason: "there is nothing to undo"})
		default:
			events = append(events, s.startUndo(i, n, false))
			free--
		}
		if len(events) >= maxSkips {
			break
		}
	}
	return events
}

// endEvents returns events that release all holds, and then the event that ends the run.
func (s *State) endEvents(phase v1alpha1.RunPhase, message string, free int, now time.Time) []Event {
	if due := s.undoAlarms(free, now); len(due) > 0 {
		return due
	}
	var events []Event
	waiting := false
	for i := range s.holding.backward() {
		n := s.heldStep(i)
		if n < 0 {
			continue
		}
		waiting = true
		if t := &s.tasks[i]; (t.undo == undoNone || t.undo == undoDue) && free > 0 {
			events = append(events, s.startUndo(i, n, true))
			free--
		}
	}
	if waiting || len(s.handlers) > 0 {
		return events
	}
	return []Event{Ended{Phase: phase, Message: message}}
}

// alarms returns the events that are due: timeouts of edges and approvals, and retries.
func (s *State) alarms(free int, now time.Time) []Event {
	if a, ok := s.nextAlarm(alarmEdge); ok && !a.at.After(now) {
		return []Event{EdgeExpired{Task: s.def[a.task].Name, Need: s.def[a.task].Needs[a.kind].Task}}
	}
	if a, ok := s.nextAlarm(alarmExpiry); ok && !a.at.After(now) {
		return s.expireQuestion(a.task, now)
	}
	if a, ok := s.nextAlarm(alarmRetry); ok && s.delayPassed(a, now) && free > 0 {
		return []Event{s.startEvent(a.task, now)}
	}
	return nil
}

func (s *State) undoAlarms(free int, now time.Time) []Event {
	a, ok := s.nextAlarm(alarmUndo)
	if !ok || !s.delayPassed(a, now) || free <= 0 {
		return nil
	}
	t, d := &s.tasks[a.task], &s.def[a.task]
	return []Event{UndoStarted{Task: d.Name, Step: d.Steps[t.undoStep].Name, Attempt: t.undoAttempts + 1, Release: !s.isRollingBack()}}
}

func (s *State) skips() []Event {
	var events []Event
	for i := range s.unmeetable.all() {
		reason, planned := s.skipReason(i)
		events = append(events, TaskSkipped{Task: s.def[i].Name, Reason: reason, Planned: planned})
		if len(events) == maxSkips {
			break
		}
	}
	return events
}

func (s *State) starts(free int, now time.Time) []Event {
	var events []Event
	for i := range s.ready.all() {
		if len(events) >= free {
			break
		}
		if !s.disturbs(i) {
			events = append(events, s.startEvent(i, now))
		}
	}
	return events
}

func (s *State) startEvent(i int, now time.Time) Event {
	t := &s.tasks[i]
	step := &s.def[i].Steps[t.step]
	e := TaskStarted{Task: s.def[i].Name, Step: step.Name, Attempt: t.attempt() + 1, TotalAt: t.totalAt}
	if e.TotalAt.IsZero() && step.TotalTimeout > 0 {
		e.TotalAt = now.Add(time.Duration(step.TotalTimeout))
	}
	if step.Timeout > 0 {
		e.TimeoutAt = now.Add(time.Duration(step.Timeout))
	}
	return e
}

func (s *State) finishEvents(free int, now time.Time) []Event {
	ignored, skipped := s.phaseCounts[taskIgnored], 0
	for i := range s.tasks {
		switch t := &s.tasks[i]; {
		case t.phase == taskSkipped && !t.planned:
			skipped++
		case t.phase == taskFailed && t.skipsChildren:
			ignored++
		}
	}
	var but []string // a branch that the graph skips does not count
	if ignored > 0 {
		but = append(but, view.Count(ignored, "ignored failure"))
	}
	if skipped > 0 {
		but = append(but, view.Count(skipped, "skipped task"))
	}
	if len(but) > 0 {
		return s.endEvents(v1alpha1.RunDegraded, "done, with "+strings.Join(but, " and "), free, now)
	}
	return s.endEvents(v1alpha1.RunSucceeded, "", free, now)
}

// stopReason returns why the run is stopping. If an operator stopped it, the first failure is
// added.
func (s *State) stopReason() string {
	why := because(s.stopping.task, s.stopping.message)
	if first := s.firstError; s.stopping.cause == CauseOperator && first != "" && !strings.Contains(why, first) {
		why += "; before that: " + first
	}
	return why
}

func (s *State) keptTasks() string {
	var names []string
	for i := range s.tasks {
		if s.tasks[i].undo == undoKept {
			names = append(names, s.def[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; effects kept, because they cannot be undone: " + view.First(names)
}
