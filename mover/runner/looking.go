package runner

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// looking says when a step that waits for controllers looks again. While they answer, the next look comes when the rest is due, if
// they continue at the same rate: each look costs the API server, and the controllers that are waited for, as much as many of their
// writes. While they are silent, looks become less and less frequent. While something is waited for, looks take no more than half of the time,
// however large the move is.
type looking struct {
	silent *backoff.ExponentialBackOff
	began  time.Time // the look
	left   int       // what the look before waited for, if it was at the same step; else 0
	at     time.Time // when the look before ended
}

func newLooking() *looking { return &looking{silent: supervise.Pace(lookFirst, lookMax)} }

// reset is called when another step follows.
func (l *looking) reset() {
	l.silent.Reset()
	l.left = 0
}

func (l *looking) begin(now time.Time) { l.began = now }

// next is how long to wait after a look with this outcome. It is never less than lookFirst after an answer: two looks that shall see the same are
// some time apart.
func (l *looking) next(o mover.Outcome, now time.Time) time.Duration {
	before, since, left := l.left, now.Sub(l.at), waitsFor(o)
	l.left, l.at = left, now
	least := lookFirst
	if left > 0 {
		least = max(least, min(now.Sub(l.began), lookLongest))
	}
	if left >= before {
		return max(l.silent.NextBackOff(), least)
	}
	l.silent.Reset()
	rest := time.Duration(float64(since) * float64(left) / float64(before-left))
	return max(min(rest, 2*since, lookMax), least) // 2*since: controllers may only have begun
}

// waitsFor is the number of objects that a look still waits for.
func waitsFor(o mover.Outcome) int {
	switch o := o.(type) {
	case mover.AcksSeen:
		return len(o.Pending)
	case mover.CopiesUnseen:
		return len(o.Pending)
	case mover.AwakeSeen:
		return len(o.Pending)
	default:
		return 0
	}
}
