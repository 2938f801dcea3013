package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"scute.dev/controllers/conditions"
	"scute.dev/eventlog"
	"scute.dev/internal/timespan"
)

const (
	// epochLooks is how often the open epoch is compared with the policy.
	epochLooks = 10 * time.Minute
	// leastEpochAge and leastEpochBytes bound the number of epochs: each is a stream, which is asked for its state at each check of the log.
	leastEpochAge   = 24 * time.Hour
	leastEpochBytes = 1 << 20
	// epochShare is the part of the log's limit, in per cent, at which an epoch with a largest size is closed, however large that is:
	// at 95 % nothing new begins.
	epochShare = 90
)

// EpochOptions say when the daemon closes the open epoch of the log by itself.
type EpochOptions struct {
	// MaxAge is the age of its first commit, MaxBytes its size; 0 is none.
	MaxAge   time.Duration
	MaxBytes int64
}

func (o *EpochOptions) addFlags(f *pflag.FlagSet) {
	f.DurationVar(&o.MaxAge, "log-epoch-max-age", o.MaxAge, "age of the open epoch of the log at which scuted closes it and continues the log in a new stream, 24h or more; 0 for no limit")
	f.Int64Var(&o.MaxBytes, "log-epoch-max-bytes", o.MaxBytes, "size of the open epoch at which scuted closes it, in bytes, at the latest at 90 % of --log-max-bytes; 0 for no limit")
}

func (o *EpochOptions) validate(logBytes int64) error {
	switch most := share(logBytes); {
	case o.MaxAge != 0 && o.MaxAge < leastEpochAge:
		return fmt.Errorf("--log-epoch-max-age is %s: it must be 24h or more, or 0 for no limit", timespan.Text(o.MaxAge))
	case o.MaxBytes != 0 && o.MaxBytes < leastEpochBytes:
		return fmt.Errorf("--log-epoch-max-bytes is %d: it must be %d (1 MiB) or more, or 0 for no limit", o.MaxBytes, leastEpochBytes)
	case logBytes > 0 && o.MaxBytes > most:
		return fmt.Errorf("--log-epoch-max-bytes is %d: it must be %d or less, 90 %% of --log-max-bytes", o.MaxBytes, most)
	}
	return nil
}

// share is the size of an open epoch with a limit at which it is closed.
func share(limit int64) int64 { return limit / 100 * epochShare }

// due says why an open epoch must be closed; "" if it need not. limit is the size at which the log refuses new commits, 0 is none.
func (o *EpochOptions) due(e eventlog.Epoch, limit int64, now time.Time) string {
	size := int64(e.Bytes) //nolint:gosec // the server has it as an int64
	switch {
	case e.Last < e.First || e.Number > 1 && e.Last == e.First: // it has no commits but the one that opens it
		return ""
	case o.MaxBytes > 0 && size >= o.MaxBytes:
		return fmt.Sprintf("policy: %d bytes, log-epoch-max-bytes is %d", size, o.MaxBytes)
	case o.MaxBytes > 0 && limit > 0 && size >= share(limit):
		return fmt.Sprintf("policy: %d bytes, %d %% of the log's limit of %d", size, epochShare, limit)
	case o.MaxAge > 0 && now.Sub(e.Since) >= o.MaxAge:
		return fmt.Sprintf("policy: it began at %s, log-epoch-max-age is %s", e.Since.UTC().Format(time.RFC3339), timespan.Text(o.MaxAge))
	}
	return ""
}

// epochs closes epochs of the log, in the process that acts: those that somebody asks for, and those that are due by the policy.
type epochs struct {
	log interface {
		Epochs(ctx context.Context) ([]eventlog.Epoch, error)
		Stats(ctx context.Context) (eventlog.Stats, error)
		CloseEpoch(ctx context.Context, c eventlog.Closing) error
		OpenCloseRequest(ctx context.Context) (eventlog.CloseRequest, bool, error)
		RefuseClose(ctx context.Context, r eventlog.CloseRequest, actor, message string, now time.Time) error
	}
	policy EpochOptions
	// held says why this process must not act at the moment; nil if it may.
	held  func() error
	actor string
	// asked has something when somebody may have asked.
	asked  chan struct{}
	told   func(closed bool, note string)
	logger *slog.Logger

	problem string // the last one that was told
}

// news is told of each commit that the log has about the daemon.
func (e *epochs) news(id string, _ uint64) {
	if id != eventlog.Closings().ID {
		return
	}
	select {
	case e.asked <- struct{}{}:
	default:
	}
}

// run closes epochs until ctx ends.
func (e *epochs) run(ctx context.Context) {
	for {
		wait := minded
		if e.held() == nil {
			if err := e.look(ctx); err == nil {
				wait = epochLooks
			} else if ctx.Err() == nil {
				e.tell(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-e.asked:
		case <-time.After(wait):
		}
	}
}

// look closes the open epoch if somebody asks for it, or if it is due. An error is of something that is tried again soon.
func (e *epochs) look(ctx context.Context) error {
	request, ok, err := e.log.OpenCloseRequest(ctx)
	if err != nil {
		return err
	}
	if ok {
		return e.answer(ctx, request, e.close(ctx, request.Closing))
	}
	if e.policy == (EpochOptions{}) {
		return nil
	}
	list, err := e.log.Epochs(ctx)
	if err != nil {
		return err
	}
	stats, err := e.log.Stats(ctx)
	if err != nil {
		return err
	}
	open, now := list[len(list)-1], time.Now()
	reason := e.policy.due(open, int64(stats.MaxBytes), now) //nolint:gosec // the server has it as an int64
	if reason == "" {
		return nil
	}
	err = e.close(ctx, eventlog.Closing{Epoch: open.Number, Actor: e.actor, Reason: reason, Time: now})
	if err != nil && ctx.Err() == nil {
		e.tell(err) // the next look tries again
	}
	return nil
}

// close closes an epoch and tells that.
func (e *epochs) close(ctx context.Context, c eventlog.Closing) error {
	if err := e.log.CloseEpoch(ctx, c); err != nil {
		return err
	}
	note := fmt.Sprintf("Epoch %d of the event log was closed for %s: %s", c.Epoch, c.Actor, c.Reason)
	e.logger.Info("closed an epoch of the event log", "epoch", c.Epoch, "actor", c.Actor, "reason", c.Reason)
	e.told(true, note)
	e.problem = ""
	return nil
}

// answer refuses what cannot succeed before somebody changes something. Anything else is tried again.
func (e *epochs) answer(ctx context.Context, r eventlog.CloseRequest, err error) error {
	if !errors.Is(err, eventlog.ErrEmptyEpoch) && !errors.Is(err, eventlog.ErrNoRoom) && !errors.Is(err, eventlog.ErrConfig) {
		return err
	}
	e.tell(err)
	return e.log.RefuseClose(ctx, r, e.actor, conditions.Short(err.Error()), time.Now())
}

// tell says once why an epoch is not closed.
func (e *epochs) tell(err error) {
	if err.Error() == e.problem {
		return
	}
	e.problem = err.Error()
	e.logger.Warn("an epoch of the event log is not closed", "error", err)
	e.told(false, "An epoch of the event log is not closed: "+err.Error())
}
