package runner

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// pacer computes when a step that waits for controllers polls them again. While they answer, the next poll is due when the remaining answers are due
// at the same rate, because each poll costs the API server, and the controllers, as much as many of their writes. While they do not answer, polls
// become less and less frequent. Polls use at most half of the time, however large the move is.
type pacer struct {
	idleBackoff *backoff.ExponentialBackOff
	startedAt   time.Time // when the current poll began
	pending     int       // the number of objects that the last poll waited for, if it was in the same step; else 0
	endedAt     time.Time // when the last poll ended
}

func newPacer() *pacer { return &pacer{idleBackoff: supervise.NewBackOff(pollFirst, pollMax)} }

// reset discards the last poll before another step.
func (l *pacer) reset() {
	l.idleBackoff.Reset()
	l.pending = 0
}

func (l *pacer) begin(now time.Time) { l.startedAt = now }

// next returns how long to wait after a poll with this outcome. It is at least pollFirst after an answer, so that two polls with the same result are
// some time apart.
func (l *pacer) next(o mover.Outcome, now time.Time) time.Duration {
	before, since, left := l.pending, now.Sub(l.endedAt), pendingCount(o)
	l.pending, l.endedAt = left, now
	least := pollFirst
	if left > 0 {
		least = max(least, min(now.Sub(l.startedAt), maxPollDuration))
	}
	if left >= before {
		return max(l.idleBackoff.NextBackOff(), least)
	}
	l.idleBackoff.Reset()
	rest := time.Duration(float64(since) * float64(left) / float64(before-left))
	return max(min(rest, 2*since, pollMax), least) // 2*since: controllers may have just started to answer
}

// pendingCount returns the number of objects that a poll still waits for.
func pendingCount(o mover.Outcome) int {
	switch o := o.(type) {
	case mover.AcksRead:
		return len(o.Pending)
	case mover.CopiesUnacknowledged:
		return len(o.Pending)
	case mover.ResumeRead:
		return len(o.Pending)
	default:
		return 0
	}
}
