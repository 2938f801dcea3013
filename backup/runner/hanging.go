package runner

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"scute.dev/backup/schedule"
)

// hangGrace is how long an operation may take after its time has ended before the volume counts as hanging. On a slow volume, flushing and removing files
// takes some time.
const hangGrace = 5 * time.Second

// stallTimeout is the time without a read or a write after which the volume is considered hanging.
const stallTimeout = time.Minute

// errVolumeHangs is returned if an operation on the volume, this one or an earlier one, does not return.
var errVolumeHangs = NewError(schedule.Problem{
	Reason: "VolumeHangs", Field: "spec.destination.volume", Message: "it hangs: an operation on it does not return",
	Next: "check the volume of scuted, or use s3; scute retries",
})

// guardedVolume is a volume that may hang. The zero value is ready for use, and it is safe for concurrent use.
type guardedVolume struct {
	// left is the number of abandoned operations that have not returned.
	left atomic.Int32
}

// hangs reports whether an abandoned operation has not returned.
func (v *guardedVolume) hangs() bool { return v.left.Load() > 0 }

// abandon records an abandoned operation, until the caller calls returned.
func (v *guardedVolume) abandon() (returned func()) {
	v.left.Add(1)
	return func() { v.left.Add(-1) }
}

// runGuarded runs work on the volume. It returns errVolumeHangs at once if the volume hangs already, and otherwise when work has not returned
// hangGrace after the end of ctx, or has not called moved for the duration stalls; 0 is no limit. The caller must not use data of an abandoned
// operation, which may still be running. If it returns an io.Closer later, runGuarded closes it.
func runGuarded[T any](ctx context.Context, v *guardedVolume, stalls time.Duration, work func(moved func()) (T, error)) (none T, err error) {
	type result struct {
		value T
		err   error
	}
	if v.hangs() {
		return none, errVolumeHangs
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
			over, still = nil, time.After(hangGrace)
		case <-still:
			returned := v.abandon()
			go func() {
				defer returned()
				if late, ok := any((<-done).value).(io.Closer); ok { // it was opened too late
					_ = late.Close()
				}
			}()
			return none, errVolumeHangs
		}
	}
}
