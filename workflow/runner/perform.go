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

type flight struct {
	cancel context.CancelFunc
	// waiting is set while the effect only waits.
	waiting atomic.Bool
	// Only the driver's goroutine accesses slotRequests.
	slotRequests []slotRequest
}

// slotRequest is an attempt's request to work again after it has waited.
type slotRequest struct {
	flight *flight
	// ctx ends when the attempt no longer waits for the answer.
	ctx     context.Context //nolint:containedctx // the context of a call
	granted chan struct{}
}

// handlerTimeout limits a failure handler without its own timeout.
const handlerTimeout = 10 * time.Minute

// begin starts an effect in a goroutine. Before that, it reads from the state everything that the
// effect needs.
func (d *drive) begin(ctx context.Context, e workflow.Effect) {
	ctx, cancel := withDeadline(ctx, e, d.clock.now())
	f := &flight{cancel: cancel}
	d.inFlight[e.EffectID] = f
	if e.Kind == workflow.EffectVerify {
		f.waiting.Store(true) // a verification only reads
		calls := d.verifications()
		go func() {
			d.reports <- report{id: e.EffectID, in: workflow.VerifyDone{Gone: verify(ctx, calls)}, ended: true}
		}()
		return
	}
	p := &performance{effect: e, call: d.call(e), kind: d.kinds[e.Spec.Kind], reports: d.reports}
	if e.Kind == workflow.EffectAct {
		p.call.Progress = d.progress(ctx, e)
	}
	p.call.Yield = func() {
		if f.waiting.CompareAndSwap(false, true) {
			select {
			case d.idle <- struct{}{}:
			default: // a notification is already pending
			}
		}
	}
	p.call.Reacquire = func(ctx context.Context) error {
		// An undo that has begun needs no slot, because its attempts are few and limited in time.
		if !f.waiting.Load() || e.Kind == workflow.EffectUndo {
			return nil
		}
		w := slotRequest{flight: f, ctx: ctx, granted: make(chan struct{})}
		select {
		case d.slotRequests <- w:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-w.granted:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for a free slot: %w", ctx.Err())
		}
	}
	if skipper, ok := d.kinds[e.TaskKind].(task.Skipper); ok && e.Step != "" {
		own := *p.call
		own.Inputs = d.a.State.Inputs(e.Task, "")
		p.skipped = skipper.SkipReason(&own)
	}
	p.step = d.inputs(e, e.With, e.Kind == workflow.EffectUndo)
	p.inverse = p.step
	if undo := e.Spec.Undo; undo != nil && !undo.None {
		p.undo, p.inverse = d.kinds[undo.Kind], d.inputs(e, undo.With, true)
	}
	go func() { p.reportResult(ctx, p.perform(ctx)) }()
}

// inputs are the inputs of a step or of its undo, and the outputs that they refer to.
type inputs struct {
	with    json.RawMessage
	outputs map[string]json.RawMessage
	partial map[string]bool // tasks whose output comes from a failed attempt
}

func (in inputs) fill() (json.RawMessage, error) {
	filled, err := workflow.Fill(in.with, func(name string) json.RawMessage { return in.outputs[name] })
	if err != nil {
		return nil, task.Final(fmt.Errorf("with: %w", err))
	}
	return filled, nil
}

// isMissingOutput reports whether the error means that the inputs refer to an output that was not
// recorded, or to a path that the output of a failed attempt lacks.
func (in inputs) isMissingOutput(err error) bool {
	var path *workflow.PathError
	return errors.Is(err, workflow.ErrNoOutput) || errors.As(err, &path) && in.partial[path.Task]
}

// errTotalTimeout is the context's cause if totalTimeout ends an attempt.
var errTotalTimeout = errors.New("totalTimeout has passed")

// withDeadline returns a context that ends at the deadline of the effect. It measures the remaining
// time with the monotonic clock, because the machine's clock may be set. An undo has only its own
// timeout, and ends when the process stops.
func withDeadline(ctx context.Context, e workflow.Effect, now time.Time) (context.Context, context.CancelFunc) {
	switch {
	case e.Kind == workflow.EffectUndo:
		return context.WithTimeout(ctx, workflow.UndoTimeout)
	case e.Kind == workflow.EffectHandle && e.Spec.Timeout > 0:
		return context.WithTimeout(ctx, time.Duration(e.Spec.Timeout))
	case e.Kind == workflow.EffectHandle:
		return context.WithTimeout(ctx, handlerTimeout)
	case !e.TotalAt.IsZero() && (e.TimeoutAt.IsZero() || e.TotalAt.Before(e.TimeoutAt)):
		return context.WithTimeoutCause(ctx, e.TotalAt.Sub(now), errTotalTimeout)
	case !e.TimeoutAt.IsZero():
		return context.WithTimeout(ctx, e.TimeoutAt.Sub(now))
	default:
		return context.WithCancel(ctx)
	}
}

func (d *drive) call(e workflow.Effect) *task.Call {
	h := &d.a.State.Header
	c := &task.Call{
		Run: d.id, Task: e.Task, Step: e.Step, Attempt: max(e.Attempt, 1), Execution: e.Execution,
		Origin:    d.a.State.Origin,
		Namespace: h.Namespace, Name: h.Name, ServiceAccount: h.ServiceAccount,
		Output: e.Output, Undo: e.Undo,
		Logger: d.runner.Logger.With("run", d.id, "task", e.Task),
	}
	if d.runner.Dir != nil {
		c.Dir = d.runner.Dir(d.id)
	}
	if e.Kind == workflow.EffectHandle {
		c.Task, c.Step = e.Step, e.Task
		c.Failure = &task.Failure{Task: e.Task, Kind: e.FailedKind, Attempt: e.FailedAttempt, Cause: string(e.Cause), Message: e.Message}
	}
	if e.Kind != workflow.EffectVerify && (d.readsInputs(e.Spec.Kind) || d.readsInputs(undoKind(e.Spec))) {
		c.Inputs = d.a.State.Inputs(e.Task, e.Step)
	}
	c.Record = func(ctx context.Context, undo json.RawMessage, adopted bool) error {
		stored := make(chan error, 1)
		select {
		case d.reports <- report{id: e.EffectID, stored: stored, in: workflow.ActRecorded{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Undo: undo, Adopted: adopted}}:
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
	c.Progress = func(string) {}
	return c
}

func (d *drive) readsInputs(kind string) bool {
	_, ok := d.kinds[kind].(task.InputReader)
	return ok
}

const progressInterval = 3 * time.Second

// progress returns a function that records what an attempt is waiting for. If two messages follow
// each other within progressInterval, the second one is recorded later. It is not dropped, because
// an attempt may report it only once.
func (d *drive) progress(ctx context.Context, e workflow.Effect) func(string) {
	var mu sync.Mutex
	var last time.Time
	var said, latest string
	waits := false
	record := func() {
		r := report{id: e.EffectID, in: workflow.ActProgressed{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Message: redact.Message(latest)}}
		select {
		case d.reports <- r:
			last, said = time.Now(), latest
		default: // the driver is busy: the next message replaces this one
		}
	}
	return func(message string) {
		mu.Lock()
		defer mu.Unlock()
		latest = message
		switch wait := progressInterval - time.Since(last); {
		case waits || message == said:
		case wait <= 0:
			record()
		default:
			waits = true
			time.AfterFunc(wait, func() {
				mu.Lock()
				defer mu.Unlock()
				if waits = false; latest != said && ctx.Err() == nil {
					record()
				}
			})
		}
	}
}

// inputs returns the inputs of an effect with the outputs that they refer to. An undo may refer to
// all recorded outputs, whatever the phase of their tasks is now.
func (d *drive) inputs(e workflow.Effect, with json.RawMessage, undo bool) inputs {
	refs, err := workflow.References(with)
	in := inputs{with: with, outputs: make(map[string]json.RawMessage, len(refs)), partial: make(map[string]bool, len(refs))}
	if err != nil {
		return in // Fill returns the error
	}
	for _, ref := range refs {
		in.outputs[ref.Task] = d.a.State.Output(ref.Task)
		if undo || ref.Task == e.Task {
			in.outputs[ref.Task], in.partial[ref.Task] = d.a.State.LatestOutput(ref.Task), d.a.State.IsPartial(ref.Task)
		}
	}
	return in
}

// performance is an effect with everything that the goroutine of the effect needs.
type performance struct {
	effect  workflow.Effect
	call    *task.Call
	kind    task.Kind
	undo    task.Kind // replaces the kind's own undo if set
	reports chan<- report
	output  json.RawMessage
	// skipped is the reason why a hook does nothing: the task of the hook has nothing to do.
	skipped string
	// step and inverse are the inputs of the step and of its undo.
	step, inverse inputs
}

func (p *performance) perform(ctx context.Context) error {
	if p.skipped != "" {
		p.call.Progress("skipped with its task: " + p.skipped)
		return nil
	}
	if p.effect.Kind == workflow.EffectUndo {
		return p.undoStep(ctx)
	}
	if none := p.effect.Spec.Undo != nil && p.effect.Spec.Undo.None; p.effect.Recreate && !none {
		var kept *task.KeptError
		switch err := p.undoStep(ctx); {
		case err == nil && p.undo == nil:
			p.call.Undo = nil // the recorded work is undone
		case err != nil && !errors.As(err, &kept):
			return fmt.Errorf("undoing the failed attempt: %w", err)
		}
		if err := p.call.ReacquireSlot(ctx); err != nil {
			return err
		}
	}
	var err error
	if p.call.With, err = p.step.fill(); err != nil {
		return err
	}
	p.output, err = p.kind.Run(ctx, p.call)
	if valid := len(p.output) == 0 || json.Valid(p.output); !valid {
		p.output = nil
		if err == nil {
			err = task.Final(errors.New("its output is not JSON"))
		}
	}
	return err
}

// undoStep undoes a step. It uses the undo that the manifest specifies or, if there is none, the
// Undo method of the step's kind.
func (p *performance) undoStep(ctx context.Context) error {
	call := *p.call
	var err error
	call.With, err = p.inverse.fill()
	switch {
	case err != nil && p.undo == nil && p.effect.Undo == nil && p.effect.Output == nil:
		return nil // every attempt failed, because its inputs could not be filled either
	case p.inverse.isMissingOutput(err):
		return &task.KeptError{Reason: "its undo has no inputs: " + err.Error()}
	case err != nil:
		return err
	case p.undo != nil:
		// An undo is never undone, so it records nothing. The step's record belongs to another kind.
		call.Undoing = true
		call.Undo, call.Record = nil, func(context.Context, json.RawMessage, bool) error { return nil }
		_, err = p.undo.Run(ctx, &call)
		return err
	default:
		return p.kind.Undo(ctx, &call)
	}
}

// reportResult reports the result of an effect. It distinguishes between a timeout of the effect
// and a cancellation.
func (p *performance) reportResult(ctx context.Context, err error) {
	e := p.effect
	message := ""
	if err != nil {
		message = redact.Message(err.Error())
	}
	out := report{id: e.EffectID, ended: true}
	var asks *task.DecisionError
	var kept *task.KeptError
	switch {
	case e.Kind == workflow.EffectHandle:
		out.in = workflow.HandlerDone{Handler: e.Step, Task: e.Task, Error: message, Output: p.output}
	case e.Kind == workflow.EffectUndo && errors.As(err, &kept):
		out.in = workflow.UndoDone{Task: e.Task, Step: e.Step, KeptReason: message}
	case e.Kind == workflow.EffectUndo && err == nil:
		out.in = workflow.UndoDone{Task: e.Task, Step: e.Step}
	case e.Kind == workflow.EffectUndo:
		out.in = workflow.UndoErrored{Task: e.Task, Step: e.Step, Message: message, Final: task.IsFinal(err)}
	case err == nil:
		out.in = workflow.ActDone{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Output: p.output}
	case errors.As(err, &asks):
		out.in = workflow.ActAwaitsOperator{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Message: message}
	default:
		failed := workflow.ActFailed{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Cause: workflow.CauseError, Message: message, Final: task.IsFinal(err), Output: p.output}
		switch {
		case !errors.Is(ctx.Err(), context.DeadlineExceeded):
			if ctx.Err() != nil {
				failed.Cause = workflow.CauseCancelled
			}
		case errors.Is(context.Cause(ctx), errTotalTimeout):
			failed.Cause, failed.Final, failed.Message = workflow.CauseTimeout, true, errTotalTimeout.Error()+": "+message
		default:
			failed.Cause, failed.Message = workflow.CauseTimeout, "the attempt timed out: "+message
		}
		out.in = failed
	}
	p.reports <- out
}
