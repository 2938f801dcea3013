package workflow

import (
	"encoding/json"
	"time"

	"scute.dev/api/v1alpha1"
)

// EffectKind identifies the kind of an effect.
type EffectKind uint8

// The kinds of effects.
const (
	EffectAct    EffectKind = iota // one attempt at a step
	EffectUndo                     // one attempt to undo a step
	EffectHandle                   // one call of a failure handler
	EffectVerify                   // a check of all steps that succeeded
)

// EffectID identifies an effect within a run.
type EffectID struct {
	Kind    EffectKind
	Task    string // "" for a handler of the whole run and for EffectVerify
	Step    string // for EffectHandle the name of the handler
	Attempt int
	// Execution is the same for all attempts until the step succeeds or is undone. For a handler, it
	// is the same for all attempts to handle one failure. Idempotency keys depend on it.
	Execution int
}

// Effect describes an effect to perform.
type Effect struct {
	EffectID
	Spec *Step
	// With holds the inputs before outputs of other tasks are substituted.
	With json.RawMessage
	// TaskKind is the kind of the task's own step, even if Spec is a hook.
	TaskKind string
	Recreate bool
	// TimeoutAt is when this attempt times out. TotalAt is when all attempts together time out. Zero
	// means no timeout.
	TimeoutAt, TotalAt time.Time
	Undo               json.RawMessage
	Output             json.RawMessage
	// The fields below describe to a failure handler the failure that it handles. The last two are set
	// only for the failure of a task.
	Cause         Cause
	Message       string
	FailedKind    string
	FailedAttempt int
}

// Effects returns the effects in flight according to the log. The driver starts those that it does
// not yet perform, and cancels those that are no longer returned.
func Effects(s *State) []Effect {
	if s.ended != nil || s.Stranded != "" {
		return nil
	}
	var list []Effect
	if s.stopping == nil { // a stop cancels them
		for i := range s.running.all() {
			if !s.lost.has(i) {
				list = append(list, s.actEffect(i))
			}
		}
	}
	for i := range s.undoing.all() {
		t := &s.tasks[i]
		e := s.effect(EffectUndo, i, t.undoStep)
		e.Attempt = t.undoAttempts
		list = append(list, e)
	}
	for _, h := range s.handlers {
		if h.running {
			list = append(list, s.handlerEffect(h))
		}
	}
	if s.verify && !s.paused && s.stopping == nil && s.lost.n == 0 {
		list = append(list, Effect{EffectID: EffectID{Kind: EffectVerify}})
	}
	return list
}

func (s *State) effect(kind EffectKind, i, n int) Effect {
	t, d := &s.tasks[i], &s.def[i]
	e := Effect{
		EffectID: EffectID{Kind: kind, Task: d.Name, Step: d.Steps[n].Name}, Spec: &d.Steps[n], TaskKind: d.Kind(),
		With: d.Steps[n].With, Undo: t.steps[n].undo, Output: t.steps[n].output,
	}
	if t.steps[n].with != nil {
		e.With = t.steps[n].with
	}
	return e
}

func (s *State) actEffect(i int) Effect {
	t := &s.tasks[i]
	e := s.effect(EffectAct, i, t.step)
	e.Attempt, e.Recreate, e.TotalAt, e.TimeoutAt = t.attempt(), t.recreate, t.totalAt, t.timeoutAt
	e.Execution = t.steps[t.step].firstAttempt
	return e
}

func (s *State) handlerEffect(h handling) Effect {
	d := &s.OnFailure[h.handler]
	e := Effect{
		EffectID: EffectID{Kind: EffectHandle, Task: h.task, Step: d.Name, Execution: h.number}, Spec: d, With: d.With, Cause: h.cause, Message: h.message,
	}
	if i, ok := s.index(h.task); ok {
		e.FailedKind, e.FailedAttempt = s.def[i].Kind(), h.attempt
	}
	return e
}

// EachStep calls fn for each step that has started and was not undone, including steps of tasks
// that a migration removed. done is true if both the step and its task have succeeded.
func EachStep(s *State, fn func(e Effect, done bool)) {
	for i := range s.tasks {
		t := &s.tasks[i]
		for n := range t.steps {
			if step := &t.steps[n]; step.started && !step.undone {
				fn(s.effect(EffectVerify, i, n), step.done && t.phase == taskSucceeded && !t.removed && !s.def[i].Steps[n].removed)
			}
		}
	}
}

// Output returns the output of a task that has ended. A failed or ignored task has an output if the
// task recorded it before the failure.
func (s *State) Output(task string) json.RawMessage {
	i, ok := s.index(task)
	if !ok {
		return nil
	}
	return s.output(i)
}

func (s *State) output(i int) json.RawMessage {
	t := &s.tasks[i]
	if !isFinal(t.phase) || t.phase == taskSkipped {
		return nil
	}
	return t.steps[s.def[i].OwnStep()].output
}

// LatestOutput returns the latest output of a task in any phase.
func (s *State) LatestOutput(task string) json.RawMessage {
	i, ok := s.index(task)
	if !ok {
		return nil
	}
	return s.tasks[i].steps[s.def[i].OwnStep()].output
}

// IsPartial reports whether the output of a task is from a failed attempt, so that it may be
// incomplete.
func (s *State) IsPartial(task string) bool {
	i, ok := s.index(task)
	return ok && s.tasks[i].steps[s.def[i].OwnStep()].partial
}

// Inputs returns the outputs of all direct and indirect dependencies of a task. For a hook that
// runs after the task, they include the output of the task itself.
func (s *State) Inputs(task, step string) map[string]json.RawMessage {
	i, ok := s.index(task)
	if !ok || !s.outputs {
		return nil
	}
	inputs := make(map[string]json.RawMessage)
	if out := s.LatestOutput(task); out != nil && s.stepIndex(i, step) > s.def[i].OwnStep() {
		inputs[task] = out
	}
	seen := make([]bool, len(s.tasks)) // a slice: faster than a map, and each attempt of a large run allocates it
	seen[i] = true
	queue := []int{i}
	for n := 0; n < len(queue); n++ {
		for k := range s.tasks[queue[n]].edges {
			parent := s.tasks[queue[n]].edges[k].parent
			if seen[parent] {
				continue
			}
			seen[parent] = true
			queue = append(queue, parent)
			if out := s.output(parent); out != nil {
				inputs[s.def[parent].Name] = out
			}
		}
	}
	return inputs
}

// Due reports whether a run can continue now without an operator. A run that waits for an approval
// is due again when a timeout ends.
func Due(s *State, now time.Time) bool {
	switch CurrentPhase(s) {
	case v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunRollingBack:
		return s.IsDefined()
	case v1alpha1.RunStranded:
		return true // another process may be able to read it
	case v1alpha1.RunPaused, v1alpha1.RunRollbackFailed:
		at := NextAt(s)
		return len(s.handlers) > 0 || s.inFlight() > 0 || s.lost.n > 0 || !at.IsZero() && !at.After(now)
	default:
		return false
	}
}

// CurrentPhase returns the phase of the run.
func CurrentPhase(s *State) v1alpha1.RunPhase {
	waiting := s.phaseCounts[taskPaused]
	switch {
	case !s.IsDefined():
		return v1alpha1.RunPending
	case s.Stranded != "":
		return v1alpha1.RunStranded
	case s.ended != nil:
		return s.ended.Phase
	case s.undoCounts[undoFailed] > 0 && s.isStuck():
		return v1alpha1.RunRollbackFailed
	case s.isRollingBack():
		return v1alpha1.RunRollingBack
	case s.Holder == "" && !s.paused:
		return v1alpha1.RunPending
	case s.stopping != nil:
		return v1alpha1.RunRunning
	case s.paused && s.inFlight() == 0:
		return v1alpha1.RunPaused
	case s.paused:
		return v1alpha1.RunPartiallyPaused
	case waiting > 0 && s.idle():
		return v1alpha1.RunPaused
	case waiting > 0:
		return v1alpha1.RunPartiallyPaused
	default:
		return v1alpha1.RunRunning
	}
}

// idle reports whether the run cannot continue without an operator. A deadline in the future does
// not count.
func (s *State) idle() bool {
	return s.inFlight() == 0 && len(s.handlers) == 0 && s.ready.n == 0 && s.unmeetable.n == 0 && len(*s.clock(alarmRetry)) == 0 &&
		(len(*s.clock(alarmEdge)) == 0 || s.approvals > 0 && s.edgesIdle()) && !s.verify && s.undoable.n == 0 && len(*s.clock(alarmUndo)) == 0
}

// CurrentInputs returns the kind and the inputs of a task's current step, before outputs of other
// tasks are substituted.
func (s *State) CurrentInputs(task string) (kind string, with json.RawMessage, ok bool) {
	i, ok := s.index(task)
	if !ok {
		return "", nil, false
	}
	e := s.effect(EffectAct, i, s.tasks[i].step)
	return e.Spec.Kind, e.With, true
}
