package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/redact"
	"scute.dev/remediator"
)

// retryFirst and retryMax are the first and the longest delay before a turn with a failed write is repeated.
const (
	retryFirst = time.Second
	retryMax   = 30 * time.Second
)

func (r *Runner) logWrite(e *tracker, a remediator.Action, err error) error {
	if err != nil {
		return fmt.Errorf("%s (%s): %w", a.Type, a.Machine.Name, err)
	}
	r.Logger.Info("done", "owner", e.agg.Name.ID, "what", a.Type, "machine", a.Machine.Name)
	return nil
}

// recordFailure logs a failed write and returns the delay before the retry. If it is at least the
// second failure in a row, with a new reason, and a remediation is in progress, it also records the
// failure in the event log.
func (r *Runner) recordFailure(ctx context.Context, e *tracker, f *remediator.Facts, cause error) (time.Duration, error) {
	if ctx.Err() != nil || errors.Is(cause, aggregate.ErrClaimLost) || errors.Is(cause, eventlog.ErrConflict) {
		return 0, cause
	}
	e.failures++
	message := redact.Message(cause.Error())
	r.Logger.Warn("a write failed; retrying", "owner", e.agg.Name.ID, "error", message)
	if state := e.agg.State; state.Active != nil && !similar(state.Failure, message) && e.failures > 1 {
		if err := e.agg.Append(ctx, remediator.TransientFailure{Message: message}); err != nil {
			return 0, err
		}
	}
	r.recordUsage(e, f)
	return min(retryFirst<<min(e.failures-1, 10), retryMax), nil
}

// similar reports whether two messages are equal except for digits, such as the port of a
// connection.
func similar(a, b string) bool {
	wordy := func(text string) string {
		return strings.Map(func(c rune) rune {
			if unicode.IsDigit(c) {
				return -1
			}
			return c
		}, text)
	}
	return wordy(a) == wordy(b)
}

func (r *Runner) logEvents(e *tracker, events []remediator.Event) {
	for _, event := range events {
		if d, ok := event.(remediator.Decided); ok {
			r.Logger.Info("decided", "owner", e.agg.Name.ID, "machine", d.Machine.Name, "verdict", d.Decision.Verdict, "rule", d.Decision.Rule, "reason", d.Decision.Reason)
		} else {
			r.Logger.Info("recorded", "owner", e.agg.Name.ID, "what", fmt.Sprintf("%T", event))
		}
	}
}
