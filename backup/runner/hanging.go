package runner

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"scute.dev/backup/schedule"
)

// hangGrace is how long an operation may continue after its timeout before the volume counts as
// hanging. A slow volume flushes and removes files slowly.
const hangGrace = 5 * time.Second

// errVolumeHangs means that an operation on the volume, this one or an earlier one, does not
// return.
var errVolumeHangs = NewError(schedule.Problem{
	Reason: "VolumeHangs", Field: "spec.destination.volume", Message: "it hangs: an operation on it does not return",
	Next: "check the volume of scuted, or use s3; scute retries",
})

// guardedVolume is a volume that may hang. The zero value works. It is safe for concurrent use.
type guardedVolume struct {
	// abandoned counts the abandoned operations that have not returned.
	abandoned atomic.Int32
}

// runGuarded runs work on the volume. If the volume already hangs, it returns errVolumeHangs at
// once. It also returns errVolumeHangs if work has not returned within hangGrace after the end of
// ctx. Such work is abandoned: it may still be running, so the caller must not use data that it
// shares with work. If abandoned work later returns an io.Closer, runGuarded closes it.
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
			if late, ok := any((<-done).value).(io.Closer); ok { // opened too late
				_ = late.Close()
			}
		}()
		return none, errVolumeHangs
	}
}

// onVolume runs work at the destination of a schedule. Work on the volume may hang and be
// abandoned, so it must not use the state of the schedule.
func onVolume[T any](ctx context.Context, r *Runner, spec *schedule.Spec, work func() (T, error)) (T, error) {
	if spec.Destination.Bucket != "" {
		return work()
	}
	return runGuarded(ctx, &r.volume, work)
}

func (r *Runner) open(ctx context.Context, spec *schedule.Spec) (Store, error) {
	of := *spec
	return onVolume(ctx, r, spec, func() (Store, error) { return r.Destination(ctx, &of) })
}
