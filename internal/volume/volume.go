package volume

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// Grace is how long after its time what was begun has not returned of which the volume hangs. One that is slow flushes, and removes, what was
// written.
const Grace = 5 * time.Second

// ErrHangs says that what was begun on the volume, just now or earlier, does not return.
var ErrHangs = errors.New("the volume hangs: what was begun there does not return; look at it")

// Volume may hang. The zero value is ready, and it is safe for concurrent use.
type Volume struct {
	// left counts what was left behind, and has not returned.
	left atomic.Int32
}

// Hangs says that something was left behind on the volume that has not returned.
func (v *Volume) Hangs() bool { return v.left.Load() > 0 }

// Leave says that something is left behind, until it calls returned.
func (v *Volume) Leave() (returned func()) {
	v.left.Add(1)
	return func() { v.left.Add(-1) }
}

// Do works on the volume. It returns ErrHangs at once where the volume hangs already, Grace after ctx has ended if work has not returned, and
// after stalls in which nothing was said to have moved; 0 is no limit. Of work that is left behind nothing may be used. What it has opened,
// and returns too late, is closed.
func Do[T any](ctx context.Context, v *Volume, stalls time.Duration, work func(moved func()) (T, error)) (none T, err error) {
	type result struct {
		value T
		err   error
	}
	if v.Hangs() {
		return none, ErrHangs
	}
	moves, done := make(chan struct{}, 1), make(chan result, 1)
	go func() {
		value, err := work(func() {
			select {
			case moves <- struct{}{}:
			default:
			}
		})
		done <- result{value, err}
	}()
	var still <-chan time.Time // nothing has moved, or returned, until then
	if stalls > 0 {
		still = time.After(stalls)
	}
	for over := ctx.Done(); ; {
		select {
		case r := <-done:
			return r.value, r.err
		case <-moves:
			if over != nil && stalls > 0 {
				still = time.After(stalls)
			}
		case <-over:
			over, still = nil, time.After(Grace)
		case <-still:
			returned := v.Leave()
			go func() {
				defer returned()
				if late, ok := any((<-done).value).(io.Closer); ok { // what was opened
					_ = late.Close()
				}
			}()
			return none, ErrHangs
		}
	}
}
