package runner

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"scute.dev/backup/schedule"
)

// hangGrace is how long an operation may take after its time has ended before the volume counts as
// hanging. On a slow volume, flushing and removing files takes some time.
const hangGrace = 5 * time.Second

// errVolumeHangs is returned if an operation on the volume, this one or an earlier one, does not return.
var errVolumeHangs = NewError(schedule.Problem{
	Reason: "VolumeHangs", Field: "spec.destination.volume", Message: "it hangs: an operation on it does not return",
	Next: "check the volume of scuted, or use s3; scute retries",
})

// guardedVolume is a volume that may hang. The zero value is ready for use, and it is safe for concurrent use.
type guardedVolume struct {
	// abandoned is the number of abandoned operations that have not returned.
	abandoned atomic.Int32
}

// runGuarded runs work on the volume. It returns errVolumeHangs at once if the volume hangs
// already, and otherwise when work has not returned hangGrace after the end of ctx. The caller must
// not use data of an abandoned operation, which may still be running. If it returns an io.Closer
// later, runGuarded closes it.
func runGuarded[T any](ctx context.Context, v *guardedVolume, work func() (T, error)) (none T, err error) {
	type result struct {
		value T
		err   error
	}
	if v.abandoned.Load() > 0 {
		return none, errVolumeHangs
	}
	done, over := make(chan result, 1), make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(hangGrace, func() { close(over) }) })()
	go func() {
		value, err := work()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-over:
		v.abandoned.Add(1)
		go func() {
			defer v.abandoned.Add(-1)
			if late, ok := any((<-done).value).(io.Closer); ok { // it was opened too late
				_ = late.Close()
			}
		}()
		return none, errVolumeHangs
	}
}

// onVolume runs work at the destination of a schedule. If that is the volume, the work may hang.
// Work that was abandoned continues, so it must not use the state of the schedule.
func onVolume[T any](ctx context.Context, r *Runner, spec *schedule.Spec, work func() (T, error)) (T, error) {
	if spec.Destination.Bucket != "" {
		return work()
	}
	return runGuarded(ctx, &r.volume, work)
}

// open opens the destination of a schedule.
func (r *Runner) open(ctx context.Context, spec *schedule.Spec) (Store, error) {
	of := *spec
	return onVolume(ctx, r, spec, func() (Store, error) { return r.Destination(ctx, &of) })
}
