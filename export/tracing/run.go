package tracing

import (
	"cmp"
	"fmt"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// Results of spans that are not defined by the API.
const (
	resultSucceeded   = "Succeeded"
	resultFailed      = "Failed"
	resultInterrupted = "Interrupted"
)

// Spans of a run. The name of the task or handler follows the slash.
const (
	spanRun      = "run"
	spanTask     = "task/"
	spanAttempt  = "attempt/"
	spanDecision = "decision/"
	spanUndo     = "undo/"
	spanHandler  = "handler/"
)

// run is a run that has not ended, or that an operator continued after its end.
type run struct{ tree }

func (r *run) apply(e workflow.Event, ev *stored) []Span {
	r.beginRun(e, ev)
	if r.finished() {
		return nil
	}
	switch e := e.(type) {
	case workflow.Ended:
		done := e.Phase == v1alpha1.RunSucceeded || e.Phase == v1alpha1.RunDegraded
		r.end(spanRun, outcome{failed: !done, result: string(e.Phase), message: e.Message}, ev)
	case workflow.HandlerStarted:
		r.begin(spanHandler+e.Handler+"/"+e.Task, spanRun, r.newTaskSpan(ev, "handler "+e.Handler, spanHandler+e.Handler, e.Task, "", 0))
	case workflow.HandlerEnded:
		r.end(spanHandler+e.Handler+"/"+e.Task, outcome{failed: e.Error != "", result: resultOf(e.Error == ""), message: e.Error}, ev)
	case workflow.UndoStarted, workflow.UndoAttemptFailed, workflow.Undone, workflow.UndoFailed:
		r.applyUndo(e, ev)
	default:
		r.applyTask(e, ev)
	}
	return r.drain()
}

// beginRun begins the span of a run. If an operator continues a run that has ended, beginRun adds
// another span to the trace, as a child of the first one.
func (r *run) beginRun(e workflow.Event, ev *stored) {
	if !r.finished() {
		return
	}
	r.traceID = TraceID(ev.logID, ev.aggregate, "")
	switch e.(type) {
	case workflow.Started:
		s := ev.root("run", "root", "")
		s.SpanID = RootID(ev.logID, ev.aggregate)
		r.begin(spanRun, "", s)
	case workflow.Resumed, workflow.RollbackStarted, workflow.TaskStarted, workflow.UndoStarted:
		s := ev.root("run continued", spanRun, "")
		r.begin(spanRun, "", s)
		s.Parent = RootID(ev.logID, ev.aggregate)
	}
}

func (*run) newTaskSpan(ev *stored, name, what, task, step string, attempt int) *Span {
	s := ev.span(name, what, task+"/"+step)
	s.set(AttributeTask, task)
	s.set(attributeStep, step)
	if attempt > 0 {
		s.Attributes = append(s.Attributes, attributeAttempt.Int(attempt))
	}
	return s
}

func (r *run) applyTask(e workflow.Event, ev *stored) {
	switch e := e.(type) {
	case workflow.TaskStarted:
		r.beginTask(e.Task, ev)
		r.end(spanDecision+e.Task, outcome{}, ev)
		r.end(spanAttempt+e.Task, outcome{failed: true, result: resultInterrupted}, ev)
		r.begin(spanAttempt+e.Task, spanTask+e.Task, r.newTaskSpan(ev, attemptName(e.Step, e.Attempt), spanAttempt, e.Task, e.Step, e.Attempt))
	case workflow.AttemptFailed:
		r.end(spanAttempt+e.Task, outcome{true, resultFailed, string(e.Cause), e.Message}, ev)
	case workflow.StepSucceeded:
		r.end(spanAttempt+e.Task, outcome{result: resultSucceeded}, ev)
	case workflow.TaskSucceeded:
		r.end(spanTask+e.Task, outcome{result: resultSucceeded}, ev)
	case workflow.TaskFailed:
		r.beginTask(e.Task, ev) // a task may fail without an attempt, for example when an approval expires
		r.end(spanTask+e.Task, outcome{true, cmp.Or(string(e.Verdict), resultFailed), string(e.Cause), e.Message}, ev)
	case workflow.TaskPaused:
		failed := e.Reason == workflow.ReasonFailed || e.Reason == workflow.ReasonUnknown
		r.end(spanAttempt+e.Task, outcome{failed, string(e.Reason), string(e.Cause), e.Message}, ev)
		r.beginTask(e.Task, ev)
		s := r.newTaskSpan(ev, "decision", spanDecision, e.Task, e.Step, 0)
		s.set(attributeCause, string(e.Reason))
		r.begin(spanDecision+e.Task, spanTask+e.Task, s)
	case workflow.Decided:
		r.end(spanDecision+e.Task, outcome{result: string(e.Action)}, ev)
		switch e.Action {
		case workflow.ActSucceed, workflow.ActIgnore:
			r.end(spanTask+e.Task, outcome{result: string(e.Action)}, ev)
		case workflow.ActIgnoreChildren:
			r.end(spanTask+e.Task, outcome{failed: true, result: string(e.Action)}, ev)
		}
	case workflow.TaskReleased:
		r.end(spanDecision+e.Task, outcome{result: "released"}, ev)
	case workflow.TaskSkipped:
		r.end(spanTask+e.Task, outcome{result: string(v1alpha1.TaskSkipped), message: e.Reason}, ev)
	case workflow.TaskInterrupted:
		r.end(spanTask+e.Task, outcome{failed: true, result: resultInterrupted, message: e.Message}, ev)
	}
}

// beginTask begins the span of a task, unless the span is already open. The span lasts from the
// first attempt at the task to the end of the task.
func (r *run) beginTask(task string, ev *stored) {
	if !r.has(spanTask + task) {
		r.begin(spanTask+task, spanRun, r.newTaskSpan(ev, "task "+task, spanTask, task, "", 0))
	}
}

func (r *run) applyUndo(e workflow.Event, ev *stored) {
	undo := func(task, step string) string { return spanUndo + task + "/" + step }
	attempt := func(task, step string) string { return spanAttempt + undo(task, step) }
	switch e := e.(type) {
	case workflow.UndoStarted:
		name := undo(e.Task, e.Step)
		if !r.has(name) {
			what := "undo "
			if e.Release {
				what = "release "
			}
			r.begin(name, spanRun, r.newTaskSpan(ev, what+e.Task, spanUndo, e.Task, e.Step, 0))
		}
		r.end(attempt(e.Task, e.Step), outcome{failed: true, result: resultInterrupted}, ev)
		r.begin(attempt(e.Task, e.Step), name, r.newTaskSpan(ev, attemptName(e.Step, e.Attempt), spanAttempt+spanUndo, e.Task, e.Step, e.Attempt))
	case workflow.UndoAttemptFailed:
		r.end(attempt(e.Task, e.Step), outcome{failed: true, result: resultFailed, message: e.Message}, ev)
	case workflow.Undone:
		r.end(undo(e.Task, e.Step), outcome{result: resultSucceeded}, ev)
	case workflow.UndoFailed:
		r.end(undo(e.Task, e.Step), outcome{failed: true, result: resultFailed, message: e.Message}, ev)
	}
}

func attemptName(step string, n int) string {
	if step == "" {
		return fmt.Sprintf("attempt %d", n)
	}
	return fmt.Sprintf("attempt of %s %d", step, n)
}

func resultOf(ok bool) string {
	if ok {
		return resultSucceeded
	}
	return resultFailed
}
