package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/eventlog"
	"scute.dev/internal/redact"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
)

// Log is what the runner needs of the event log.
type Log interface {
	Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error)
	Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error)
}

// Performer performs the steps of one move; *transfer.Transfer does.
type Performer interface {
	Perform(ctx context.Context, s *mover.State, step mover.Step, emit transfer.Emit) (mover.Outcome, error)
}

// ErrLost says that another process has claimed the move.
var ErrLost = errors.New("another process has claimed the move")

// errStepOver stops a step that the state no longer calls for, because of an abort for example.
var errStepOver = errors.New("the state no longer calls for this step")

// Runner drives moves. Its fields are set before use and not changed.
type Runner struct {
	Log Log
	// Incarnation names this very process; a restarted process has another.
	Incarnation string
	// Performer makes the effects of a move.
	Performer func(id string) Performer
	Logger    *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

const (
	// A step that waits for others looks again after lookFirst, then less and less often.
	lookFirst = 150 * time.Millisecond
	lookMax   = 2 * time.Second
	// A step that failed is tried again after retryFirst, then less and less often.
	retryFirst = 500 * time.Millisecond
	retryMax   = 30 * time.Second
)

// Drive takes a move as far as it goes: to its end, to a failure that waits for a human, or until ctx ends. Another
// process's claim ends it with ErrLost. Whatever Drive leaves undone, the next Drive does.
func (r *Runner) Drive(ctx context.Context, id string) error {
	a, err := r.load(ctx, id)
	if err != nil {
		return err
	}
	if !mover.Due(&a.state) {
		return nil
	}
	if err := a.append(ctx, mover.Claimed{Holder: r.Incarnation}); err != nil {
		return err
	}
	performer := r.Performer(id)
	look, retry := pace(lookFirst, lookMax), pace(retryFirst, retryMax)
	for {
		if err := a.refresh(ctx); err != nil {
			return err
		}
		if done, err := a.decide(ctx, mover.Tick{}); err != nil {
			return err
		} else if done > 0 {
			continue
		}
		step := mover.Next(&a.state)
		if step == mover.None {
			return nil
		}
		outcome, err := performer.Perform(ctx, &a.state, step, func(o mover.Outcome) error {
			if _, err := a.decide(ctx, o); err != nil {
				return err
			}
			if a.interrupted(step) {
				return errStepOver
			}
			return nil
		})
		if errors.Is(err, errStepOver) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := a.decide(ctx, outcome); err != nil {
			return err
		}
		failed, isFailure := outcome.(mover.StepFailed)
		if isFailure {
			r.Logger.Warn("step failed", "move", id, "step", step, "error", redact.Message(failed.Message), "final", failed.Final)
		} else {
			retry.Reset()
		}
		var wait time.Duration
		switch again := mover.Next(&a.state) == step; {
		case !again:
			look.Reset() // something else follows, at once: the rollback of a final failure too
		case isFailure:
			wait = retry.NextBackOff()
		default:
			wait = look.NextBackOff()
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func pace(first, longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(first), backoff.WithMaxInterval(longest),
		backoff.WithMultiplier(1.3), backoff.WithMaxElapsedTime(0))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Request asks for a move. Asking again for the same one changes nothing.
func (r *Runner) Request(ctx context.Context, id, actor string, spec mover.Spec) error {
	a := r.aggregate(id)
	a.actor = actor
	err := a.append(ctx, mover.Requested{Spec: spec})
	if errors.Is(err, eventlog.ErrConflict) {
		return nil // it is in the log already
	}
	return err
}

// Abort records an operator's decision to roll a move back. It says nothing when the move is over, or when the decision
// is recorded already, be it under way or refused; whether it comes in time is for the move to decide.
func (r *Runner) Abort(ctx context.Context, id, actor, reason string) error {
	for {
		a, err := r.load(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case a.seq == 0:
			return fmt.Errorf("move %q is not in the log", id)
		case a.state.Finished() || a.state.Abort || a.state.AbortRefused || a.state.RollbackCause != "":
			return nil
		}
		a.actor = actor
		err = a.append(ctx, mover.AbortRequested{Reason: reason})
		if !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
	}
}
