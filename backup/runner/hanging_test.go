package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// opened counts calls of Close.
type opened struct{ closed *int }

func (o opened) Close() error {
	*o.closed++
	return nil
}

// TestRunGuarded checks that a call that hangs is abandoned, that no other call starts until it has
// returned, and that what it opens too late is closed.
func TestRunGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var v guardedVolume
		begun, closed, may := time.Now(), 0, make(chan struct{})
		_, err := runGuarded(ctx, &v, func() (opened, error) {
			<-may
			return opened{&closed}, nil
		})
		if took := time.Since(begun); !errors.Is(err, errVolumeHangs) || took != time.Hour+hangGrace || v.abandoned.Load() != 1 || closed > 0 {
			t.Errorf("after %s: %v", took, err)
		}
		one := func() (int, error) { return 1, nil }
		if n, err := runGuarded(t.Context(), &v, one); n != 0 || !errors.Is(err, errVolumeHangs) {
			t.Errorf("second call = %d, error %v", n, err)
		}
		close(may)
		synctest.Wait()
		if n, err := runGuarded(t.Context(), &v, one); n != 1 || err != nil || closed != 1 {
			t.Errorf("call after the return = %d, error %v, %d closed", n, err, closed)
		}
	})
}

// TestRunGuardedReturnsWhatWorkReturns checks that a call that returns within the grace period does
// not count as hanging.
func TestRunGuardedReturnsWhatWorkReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var v guardedVolume
		failed := errors.New("it was unmounted")
		n, err := runGuarded(ctx, &v, func() (int, error) {
			<-ctx.Done()
			time.Sleep(hangGrace - time.Nanosecond)
			return 2, failed
		})
		if n != 2 || !errors.Is(err, failed) || v.abandoned.Load() != 0 {
			t.Errorf("runGuarded = %d, error %v, %d abandoned", n, err, v.abandoned.Load())
		}
	})
}
