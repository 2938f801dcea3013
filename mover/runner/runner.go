package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
	"scute.dev/internal/redact"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
)

// Performer performs the steps of one move; *transfer.Transfer implements it.
type Performer interface {
	// Reach checks that the clusters that a step needs can be reached. If one cannot, it returns
	// failed. It returns err only if ctx ends.
	Reach(ctx context.Context, s *mover.State, step mover.Step) (failed *mover.StepFailed, err error)
	Perform(ctx context.Context, s *mover.State, step mover.Step, emit transfer.Emit) (mover.Outcome, error)
}

var errStepObsolete = errors.New("the state no longer requires this step")

// Runner drives moves. Set its fields before use.
type Runner struct {
	Log aggregate.Log
	// Home identifies the management cluster and the log of this process. Moves with another Home
	// are not driven.
	Home mover.Home
	// Incarnation identifies this process and changes at a restart.
	Incarnation string
	Performer   func(id string) Performer
	// Slots limits the moves that work concurrently; nil means no limit. A move that waits, or
	// whose clusters are unreachable, holds no slot.
	Slots  *fair.Slots
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	supervise.Drivers
}

const (
	// A step that waits for controllers is polled with a backoff, which restarts when an object has
	// responded.
	pollFirst = 150 * time.Millisecond
	pollMax   = 2 * time.Second
	// maxPollDuration limits the measured duration of a poll, because the clock may be set or the
	// machine suspended during the poll.
	maxPollDuration = time.Minute
	// The backoff of a step that failed.
	retryFirst = 500 * time.Millisecond
	retryMax   = 30 * time.Second
)

// Drive runs a move until it ends, a failure requires an operator, or ctx ends. It returns
// aggregate.ErrClaimLost if another process claims the move. The next Drive continues unfinished
// work.
func (r *Runner) Drive(ctx context.Context, id string) error {
	m := r.root(id, "daemon/"+r.Incarnation)
	if err := m.Read(ctx); err != nil || isForeign(r.Home, m.State) || !mover.Due(m.State) {
		return err
	}
	if err := m.Append(ctx, mover.Claimed{Holder: r.Incarnation}); err != nil {
		return err
	}
	news, stop := r.Subscribe(id)
	defer stop()
	d := &drive{
		root: m, runner: r, performer: r.Performer(id), slot: r.Slots.Slot(m.State.Spec.Namespace), updates: news,
		poll: supervise.NewBackOff(pollFirst, pollMax), retry: supervise.NewBackOff(retryFirst, retryMax),
	}
	defer d.slot.Release()
	for {
		if err := d.refresh(ctx); err != nil {
			return err
		}
		if done, err := d.decide(ctx, mover.Tick{}); err != nil {
			return err
		} else if done > 0 {
			continue
		}
		step := mover.Next(m.State)
		if step == mover.None {
			return nil
		}
		err := d.step(ctx, step)
		if errors.Is(err, eventlog.ErrTooLarge) { // a retry would not be smaller
			err = d.conclude(ctx, step, mover.StepFailed{
				Final: true, Message: err.Error(),
				Next: "split the move: select fewer Clusters by name in each Move",
			})
		}
		if err != nil && !errors.Is(err, errStepObsolete) {
			return err
		}
	}
}

type drive struct {
	*root

	runner    *Runner
	performer Performer
	slot      *fair.Slot
	updates   <-chan uint64
	poll      *backoff.ExponentialBackOff // for a step that waits for controllers
	retry     *backoff.ExponentialBackOff
	startedAt time.Time // of the current poll
}

// step performs a step, or the part of it that can be done now. If it had to wait for the slot, it
// performs nothing, because other processes may have appended meanwhile.
func (d *drive) step(ctx context.Context, step mover.Step) error {
	failed, err := d.performer.Reach(ctx, d.State, step)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return d.conclude(ctx, step, *failed)
	}
	const reason = "the limit of concurrent moves is reached (--move-concurrency)"
	if waited, err := d.runner.Acquire(ctx, d.Name.ID, d.slot, reason); waited || err != nil {
		return err
	}
	d.startedAt = d.Time()
	outcome, err := d.performer.Perform(ctx, d.State, step, func(o mover.Outcome) error {
		if _, err := d.decide(ctx, o); err != nil {
			return err
		}
		if d.interrupted(step) {
			return errStepObsolete
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.conclude(ctx, step, outcome)
}

// conclude records the events that follow from the outcome of a step, and waits if the step must be
// repeated.
func (d *drive) conclude(ctx context.Context, step mover.Step, outcome mover.Outcome) error {
	decided, err := d.decide(ctx, outcome)
	if err != nil {
		return err
	}
	failed, isFailure := outcome.(mover.StepFailed)
	if isFailure {
		d.runner.Logger.Warn("step failed", "move", d.Name.ID, "step", step, "error", redact.Message(failed.Message), "final", failed.Final)
	} else {
		d.retry.Reset()
	}
	var wait time.Duration
	switch {
	case mover.Next(d.State) != step, d.State.Abort && d.interrupted(step):
		d.poll.Reset() // another step follows at once, for example a rollback or an operator's request
		return ctx.Err()
	case isFailure:
		wait = d.retry.NextBackOff()
	default:
		if decided > 0 {
			d.poll.Reset()
		}
		// A poll may cost the API server more than many writes, so the wait is at least as long as
		// the last poll took. Two equal results may end a phase, so two polls are at least
		// pollFirst apart.
		wait = max(d.poll.NextBackOff(), pollFirst, min(d.Time().Sub(d.startedAt), maxPollDuration))
	}
	d.slot.Release() // a step that only waits does not block others
	return d.runner.Sleep(ctx, wait, d.updates, d.Seq)
}

// Request records the request of a move. It is idempotent.
func (r *Runner) Request(ctx context.Context, id, actor string, spec mover.Spec) error {
	return r.root(id, actor).Create(ctx, mover.Requested{Spec: spec, Home: r.Home})
}

// Recover records a move whose progress this log does not contain; see mover.LogLost.
func (r *Runner) Recover(ctx context.Context, id, actor string, spec mover.Spec, lost mover.LogLost) error {
	return r.root(id, actor).Create(ctx, mover.Requested{Spec: spec, Home: r.Home}, lost)
}

// ErrNotStranded is returned if a move needs no resolution.
var ErrNotStranded = errors.New("the move is not stranded: it needs no resolution")

// Resolve records in which direction a stranded move should continue. The move later checks both
// clusters to find out whether that direction is safe.
func (r *Runner) Resolve(ctx context.Context, id, actor string, way mover.Direction, reason string) error {
	return r.command(ctx, id, actor, func(s *mover.State) (mover.Event, error) {
		if !s.TransientFailure.Stranded && s.Lost == nil {
			return nil, ErrNotStranded
		}
		return mover.Resolved{Direction: way, Reason: reason}, nil
	})
}

// Abandon records that an operator has abandoned the target of a move.
func (r *Runner) Abandon(ctx context.Context, id, actor, reason string) error {
	return r.command(ctx, id, actor, func(s *mover.State) (mover.Event, error) {
		if s.Abandon {
			return nil, nil
		}
		return mover.TargetAbandoned{Reason: reason}, nil
	})
}

// Abort records an operator's request to roll a move back. It does nothing if the move has ended,
// or if an abort or a rollback is recorded. The move decides whether the abort is in time.
func (r *Runner) Abort(ctx context.Context, id, actor, reason string) error {
	return r.command(ctx, id, actor, func(s *mover.State) (mover.Event, error) {
		if s.Abort || s.AbortRefused || s.RollbackCause != "" {
			return nil, nil
		}
		return mover.AbortRequested{Reason: reason}, nil
	})
}

// command appends the event that say returns for the state of a move. It does nothing if the move
// has ended or say returns nil.
func (r *Runner) command(ctx context.Context, id, actor string, say func(*mover.State) (mover.Event, error)) error {
	m := r.root(id, actor)
	if err := m.Read(ctx); err != nil {
		return err
	}
	if m.Seq == 0 {
		return fmt.Errorf("move %q is not in the log", id)
	}
	return m.Decide(ctx, m.Read, func(s *mover.State) ([]mover.Event, error) {
		if s.Finished() {
			return nil, nil
		}
		event, err := say(s)
		if err != nil || event == nil {
			return nil, err
		}
		return []mover.Event{event}, nil
	})
}

type root = aggregate.Root[mover.Event, *mover.State]

func (r *Runner) root(id, actor string) *root {
	return &root{
		Log: r.Log, Catalog: mover.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, Actor: actor, Now: r.Now,
		Links: mover.Links, State: new(mover.State),
	}
}

// refresh reads the commits of other processes. It returns an error if another process has claimed
// the move.
func (d *drive) refresh(ctx context.Context) error { return d.Refresh(ctx, d.runner.Incarnation) }

// decide records the events that follow from an outcome, and returns their number. If another
// process has appended first, it reads that and decides again.
func (d *drive) decide(ctx context.Context, o mover.Outcome) (decided int, err error) {
	err = d.Decide(ctx, d.refresh, func(s *mover.State) ([]mover.Event, error) {
		events, err := mover.Decide(s, o, d.Time())
		decided = len(events)
		return events, err
	})
	return decided, err
}

func (d *drive) interrupted(step mover.Step) bool {
	if events, err := mover.Decide(d.State, mover.Tick{}, d.Time()); err != nil || len(events) > 0 {
		return true
	}
	return mover.Next(d.State) != step
}

// Supervisor returns a supervisor that drives the unfinished moves of a view. The caller notifies
// it of changes in the view.
func (r *Runner) Supervisor(v *Moves) *supervise.Supervisor {
	return &supervise.Supervisor{
		Noun: "move", IDs: v.IDs, Due: v.Due, Drive: r.Drive, Drivers: &r.Drivers, Logger: r.Logger,
	}
}
