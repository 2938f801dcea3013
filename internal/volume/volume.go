package volume

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// Grace is how long an operation may take after its time has ended before the volume counts as hanging. On a slow volume, flushing and removing files
// takes some time.
const Grace = 5 * time.Second

// ErrHangs is returned if an operation on the volume, this one or an earlier one, does not return.
var ErrHangs = errors.New("the volume hangs: what was begun there does not return; look at it")

// Volume is a volume that may hang. The zero value is ready for use, and it is safe for concurrent use.
type Volume struct {
	// left is the number of abandoned operations that have not returned.
	left atomic.Int32
}

// Hangs reports whether an abandoned operation has not returned.
func (v *Volume) Hangs() bool { return v.left.Load() > 0 }

// Leave records an abandoned operation, until the caller calls returned.
func (v *Volume) Leave() (returned func()) {
	v.left.Add(1)
	return func() { v.left.Add(-1) }
}

// Do runs work on the volume. It returns ErrHangs at once if the volume hangs already, and otherwise when work has not returned Grace after the end
// of ctx, or has not called moved for the duration stalls; 0 is no limit. The caller must not use anything of an abandoned operation. If it returns
// an io.Closer later, Do closes it.
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
	var still <-chan time.Time // when the work counts as hanging
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
				if late, ok := any((<-done).value).(io.Closer); ok { // it was opened too late
					_ = late.Close()
				}
			}()
			return none, ErrHangs
		}
	}
}
