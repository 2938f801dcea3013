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

// outlast is a context that ends some time after ctx does.
func outlast(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// shutdownTimeout bounds how long a driver that has to end takes to store the result of its last effects.
const shutdownTimeout = 5 * time.Second

// leave cancels what is in flight, and stores the result all the same: a process that is asked to end makes nobody do
// twice what is done, and is not taken for one that died. What it cannot store is ErrUnrecorded, unless another process has
// the run already: that one finds it out.
func (d *drive) leave(ctx context.Context) error {
	for _, f := range d.inFlight {
		f.cancel()
	}
	for len(d.inFlight) > 0 {
		d.take(<-d.reports)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	tasks, err := d.keep(ctx)
	d.tell(aggregate.ErrLost)
	if err == nil || len(tasks) == 0 || errors.Is(err, eventlog.ErrConflict) {
		return nil
	}
	return fmt.Errorf("%s: %w: %s: look whether it may be done again before the run continues: %w", d.id, ErrUnrecorded, strings.Join(tasks, ", "), err)
}

// keep stores what has ended, and names the tasks of which it is.
func (d *drive) keep(ctx context.Context) (tasks []string, err error) {
	for _, r := range d.unstored {
		if !ended(r.in) {
			continue
		}
		tasks = append(tasks, r.id.Task)
		if _, err := d.a.decide(r.in); err != nil {
			return tasks, err
		}
	}
	for _, e := range workflow.Effects(d.a.State) { // all that had begun has reported: this was stored as started, and never was
		if e.Kind == workflow.EffectAct {
			in := workflow.ActFailed{Task: e.Task, Step: e.Step, Attempt: e.Attempt, Cause: workflow.CauseCancelled, Message: "it had not begun"}
			if _, err := d.a.decide(in); err != nil {
				return tasks, err
			}
		}
	}
	return tasks, d.a.Store(ctx)
}

// ended says that what a process that is asked to end reports is true for who comes next. An attempt that it cancels is one of
// these, because such an attempt does not count as lost. A look, an undo or a handler that was cut short is not: it is done again.
func ended(in workflow.Input) bool {
	switch in := in.(type) {
	case workflow.ActDone, workflow.ActFailed, workflow.ActAsks, workflow.ActRecords, workflow.UndoDone:
		return true
	case workflow.HandlerDone:
		return in.Error == ""
	default:
		return false
	}
}
