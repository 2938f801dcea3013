package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"scute.dev/internal/redact"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// flight is an effect that is being performed.
type flight struct {
	cancel context.CancelFunc
	// waits says that it does nothing but wait.
	waits atomic.Bool
}

// handlerTimeout bounds a handler of the error channel that names no timeout.
const handlerTimeout = 10 * time.Minute

// begin performs an effect in a goroutine of its own. All that it needs of the state is taken here.
func (d *drive) begin(ctx context.Context, e workflow.Effect) {
	ctx, cancel := deadline(ctx, e)
	f := &flight{cancel: cancel}
	d.inFlight[e.EffectID] = f
	if e.Kind == workflow.EffectVerify {
		f.waits.Store(true) // it only looks
		calls := d.verifications()
		go func() {
			d.reports <- report{id: e.EffectID, in: workflow.VerifyDone{Gone: verify(ctx, calls)}, over: true}
		}()
		return
	}
	p := &performance{effect: e, call: d.call(e), kind: d.kinds[e.Spec.Kind], reports: d.reports}
	p.call.Waits = func() {
		if f.waits.CompareAndSwap(false, true) {
			select {
			case d.rested <- struct{}{}:
			default: // it will look at all of them
			}
		}
	}
	if e.Kind == workflow.EffectUndo && e.Spec.Undo != nil && !e.Spec.Undo.None {
		p.undo = d.kinds[e.Spec.Undo.Kind]
	}
	with := e.With
	if p.undo != nil {
		with = e.Spec.Undo.With
	}
	outputs := d.outputs(e, with)
	go func() {
		filled, err := workflow.Fill(with, func(name string) json.RawMessage { return outputs[name] })
		if err != nil {
			err = task.Final(fmt.Errorf("with: %w", err))
		}
		p.call.With = filled
		if err != nil && p.nothingDone() {
			p.report(ctx, nil)
			return
		}
		p.report(ctx, p.perform(ctx, err))
	}()
}

// deadline is the context of an effect: an attempt ends when it runs out of time, an undo is not reached by the end of
// anything but the process.
func deadline(ctx context.Context, e workflow.Effect) (context.Context, context.CancelFunc) {
	limit := func(at time.Time) (context.Context, context.CancelFunc) { return context.WithDeadline(ctx, at) }
	switch {
	case e.Kind == workflow.EffectUndo:
		return context.WithTimeout(ctx, workflow.UndoTimeout)
	case e.Kind == workflow.EffectHandle && e.Spec.Timeout > 0:
		return context.WithTimeout(ctx, time.Duration(e.Spec.Timeout))
	case e.Kind == workflow.EffectHandle:
		return context.WithTimeout(ctx, handlerTimeout)
	case !e.TotalAt.IsZero() && (e.TimeoutAt.IsZero() || e.TotalAt.Before(e.TimeoutAt)):
		return limit(e.TotalAt)
	case !e.TimeoutAt.IsZero():
		return limit(e.TimeoutAt)
	default:
		return context.WithCancel(ctx)
	}
}

// call is what a kind is told.
func (d *drive) call(e workflow.Effect) *task.Call {
	h := &d.a.state.Header
	c := &task.Call{
		Run: d.id, Task: e.Task, Step: e.Step, Attempt: max(e.Attempt, 1),
		Namespace: h.Namespace, Name: h.Name, ServiceAccount: h.ServiceAccount,
		Output: e.Output, Undo: e.Undo,
		Logger: d.runner.Logger.With("run", d.id, "task", e.Task),
	}
	if d.runner.Dir != nil {
		c.Dir = d.runner.Dir(d.id)
	}
	if e.Kind == workflow.EffectHandle {
		c.Task, c.Step = e.Step, e.Task
		c.Failure = &task.Failure{Task: e.Task, Cause: string(e.Cause), Message: e.Message}
	}
	if e.Kind != workflow.EffectVerify {
		c.Inputs = d.a.state.Inputs(e.Task)
	}
	c.Record = func(ctx context.Context, undo json.RawMessage, adopted bool) error {
		stored := make(chan error, 1)
		select {
		case d.reports <- report{id: e.EffectID, stored: stored, in: workflow.ActRecords{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Undo: undo, Adopted: adopted}}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-stored:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.Progress = d.progress(e)
	return c
}

// sayEvery bounds how often the log hears what an attempt waits for.
const sayEvery = 3 * time.Second

func (d *drive) progress(e workflow.Effect) func(string) {
	var mu sync.Mutex
	var last time.Time
	var said string
	return func(message string) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind != workflow.EffectAct || message == said || time.Since(last) < sayEvery {
			return
		}
		r := report{id: e.EffectID, in: workflow.ActSays{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Message: redact.Message(message)}}
		select {
		case d.reports <- r:
			last, said = time.Now(), message
		default: // the log is behind; what comes next will be said instead
		}
	}
}

// outputs are those that inputs refer to, of this step itself for its undo too.
func (d *drive) outputs(e workflow.Effect, with json.RawMessage) map[string]json.RawMessage {
	refs, err := workflow.References(with)
	if err != nil || len(refs) == 0 {
		return nil
	}
	out := make(map[string]json.RawMessage, len(refs))
	for _, ref := range refs {
		out[ref.Task] = d.a.state.Output(ref.Task)
		if e.Kind == workflow.EffectUndo { // it was there when the step was performed
			out[ref.Task] = d.a.state.Recorded(ref.Task)
		}
	}
	return out
}

// performance is one effect in its goroutine.
type performance struct {
	effect  workflow.Effect
	call    *task.Call
	kind    task.Kind
	undo    task.Kind // instead of the kind's own inverse
	reports chan<- report
	output  json.RawMessage
}

// nothingDone says of an undo whose inputs cannot be filled in that no attempt ever had any: each has failed for that.
func (p *performance) nothingDone() bool {
	return p.effect.Kind == workflow.EffectUndo && p.undo == nil && p.effect.Undo == nil && p.effect.Output == nil
}

func (p *performance) perform(ctx context.Context, err error) error {
	switch {
	case err != nil:
		return err
	case p.effect.Kind == workflow.EffectUndo && p.undo != nil:
		_, err = p.undo.Run(ctx, p.call)
		return err
	case p.effect.Kind == workflow.EffectUndo:
		return p.kind.Undo(ctx, p.call)
	case p.effect.Recreate:
		if err := p.kind.Undo(ctx, p.call); err != nil {
			return fmt.Errorf("taking away what the failed attempt made: %w", err)
		}
	}
	p.output, err = p.kind.Run(ctx, p.call)
	if err == nil && len(p.output) > 0 && !json.Valid(p.output) {
		return task.Final(errors.New("its output is not JSON"))
	}
	return err
}

// report says what came of it. A timeout is told from a cancellation by the deadline.
func (p *performance) report(ctx context.Context, err error) {
	e := p.effect
	message := ""
	if err != nil {
		message = redact.Message(err.Error())
	}
	out := report{id: e.EffectID, over: true}
	var asks *task.DecisionError
	switch {
	case e.Kind == workflow.EffectHandle:
		out.in = workflow.HandlerDone{Handler: e.Step, Task: e.Task, Error: message, Output: p.output}
	case e.Kind == workflow.EffectUndo && err == nil:
		out.in = workflow.UndoDone{Task: e.Task, Step: e.Step}
	case e.Kind == workflow.EffectUndo:
		out.in = workflow.UndoBroke{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Message: message, Final: task.IsFinal(err)}
	case err == nil:
		out.in = workflow.ActDone{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Output: p.output}
	case errors.As(err, &asks):
		out.in = workflow.ActAsks{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Message: message}
	default:
		failed := workflow.ActFailed{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Cause: workflow.CauseError, Message: message, Final: task.IsFinal(err)}
		switch at := time.Now(); {
		case !errors.Is(ctx.Err(), context.DeadlineExceeded):
			if ctx.Err() != nil {
				failed.Cause = workflow.CauseCancelled
			}
		case !e.TotalAt.IsZero() && !at.Before(e.TotalAt):
			failed.Cause, failed.Final, failed.Message = workflow.CauseTimeout, true, "it ran out of its total time: "+message
		default:
			failed.Cause, failed.Message = workflow.CauseTimeout, "the attempt ran out of time: "+message
		}
		out.in = failed
	}
	p.reports <- out
}

// verification is one step that has succeeded and can tell whether it still stands.
type verification struct {
	kind task.Verifier
	call *task.Call
}

func (d *drive) verifications() []verification {
	var list []verification
	workflow.Succeeded(d.a.state, func(e workflow.Effect) {
		kind, ok := d.kinds[e.Spec.Kind].(task.Verifier)
		if !ok {
			return
		}
		c := d.call(e)
		filled, err := workflow.Fill(e.With, d.a.state.Output)
		if err != nil {
			return
		}
		c.With = filled
		list = append(list, verification{kind, c})
	})
	return list
}

// verifyTimeout bounds the look at one step.
const verifyTimeout = 2 * time.Minute

// verify asks about one step after the other. What cannot be told is taken to stand.
func verify(ctx context.Context, list []verification) []workflow.Gone {
	look := func(v verification) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
		defer cancel()
		return v.kind.Verify(ctx, v.call)
	}
	var gone []workflow.Gone
	for _, v := range list {
		why, err := look(v)
		switch {
		case err != nil:
			v.call.Logger.Warn("cannot tell whether a done task still stands", "error", redact.Message(err.Error()))
		case why != "":
			gone = append(gone, workflow.Gone{Task: v.call.Task, Why: redact.Message(why)})
		}
	}
	return gone
}
