package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

func withGrace(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// shutdownTimeout limits how long a driver that stops tries to store the results of its last
// effects.
const shutdownTimeout = 5 * time.Second

// shutdown cancels the effects in flight and stores their results, so that an orderly stop does not
// look like a crash. It returns ErrUnrecorded if it could not store them. If another process has
// claimed the run, it does not return that error.
func (d *drive) shutdown(ctx context.Context) error {
	for _, f := range d.inFlight {
		f.cancel()
	}
	for len(d.inFlight) > 0 {
		d.addReport(<-d.reports)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	tasks, err := d.storeResults(ctx)
	d.notifyStored(aggregate.ErrClaimLost)
	if err == nil || len(tasks) == 0 || errors.Is(err, eventlog.ErrConflict) {
		return nil
	}
	return fmt.Errorf("%s: %w: %s: check whether these tasks may run again, then resume the run: %w", d.id, ErrUnrecorded, strings.Join(tasks, ", "),
		err)
}

func (d *drive) storeResults(ctx context.Context) (tasks []string, err error) {
	for _, r := range d.unstored {
		if !outlivesProcess(r.in) {
			continue
		}
		tasks = append(tasks, r.id.Task)
		if _, err := d.a.decide(r.in); err != nil {
			return tasks, err
		}
	}
	for _, e := range workflow.Effects(d.a.State) { // stored as started but never begun: all others have reported
		if e.Kind == workflow.EffectAct {
			in := workflow.ActFailed{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Cause: workflow.CauseCancelled, Message: "it had not started"}
			if _, err := d.a.decide(in); err != nil {
				return tasks, err
			}
		}
	}
	return tasks, d.a.Store(ctx)
}

// outlivesProcess reports whether a result from a stopping process is valid for the next one. An
// interrupted verification, undo or handler is repeated instead.
func outlivesProcess(in workflow.Input) bool {
	switch in := in.(type) {
	case workflow.ActDone, workflow.ActFailed, workflow.ActAwaitsOperator, workflow.ActRecorded, workflow.UndoDone:
		return true
	case workflow.HandlerDone:
		return in.Error == ""
	default:
		return false
	}
}
