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

// TestRunGuarded checks that a call that hangs is abandoned, that no other call starts until it has returned, and that what it
// opens too late is closed.
func TestRunGuarded(t *testing.T) {
	for name, c := range map[string]struct {
		timeout, stalls, want time.Duration
		moves                 int // number of reports of progress, one every 50 s
	}{
		"its time is over":             {timeout: time.Hour, want: time.Hour + hangGrace},
		"nothing moves":                {timeout: time.Hour, stalls: time.Minute, want: time.Minute},
		"nothing moves any more":       {timeout: time.Hour, stalls: time.Minute, moves: 3, want: 3*50*time.Second + time.Minute},
		"its time is over as it moves": {timeout: time.Minute, stalls: time.Minute, moves: 3, want: time.Minute + hangGrace},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			defer cancel()
			var v guardedVolume
			begun, closed, may := time.Now(), 0, make(chan struct{})
			_, err := runGuarded(ctx, &v, c.stalls, func(moved func()) (opened, error) {
				for range c.moves {
					time.Sleep(50 * time.Second)
					moved()
				}
				<-may
				return opened{&closed}, nil
			})
			if took := time.Since(begun); !errors.Is(err, errVolumeHangs) || took != c.want || !v.hangs() || closed > 0 {
				t.Errorf("%s: after %s, want %s: %v", name, took, c.want, err)
			}
			one := func(func()) (int, error) { return 1, nil }
			if n, err := runGuarded(t.Context(), &v, 0, one); n != 0 || !errors.Is(err, errVolumeHangs) {
				t.Errorf("%s: second call = %d, error %v", name, n, err)
			}
			close(may)
			time.Sleep(time.Hour) // until all timers have expired
			synctest.Wait()
			if n, err := runGuarded(t.Context(), &v, 0, one); n != 1 || err != nil || closed != 1 {
				t.Errorf("%s: call after the return = %d, error %v, %d closed", name, n, err, closed)
			}
		})
	}
}

// TestRunGuardedReturnsWhatWorkReturns checks that a call that returns within the grace period does not count as hanging.
func TestRunGuardedReturnsWhatWorkReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var v guardedVolume
		failed := errors.New("it was unmounted")
		n, err := runGuarded(ctx, &v, 0, func(func()) (int, error) {
			<-ctx.Done()
			time.Sleep(hangGrace - time.Nanosecond)
			return 2, failed
		})
		if n != 2 || !errors.Is(err, failed) || v.hangs() {
			t.Errorf("runGuarded = %d, error %v, hangs %t", n, err, v.hangs())
		}
	})
}
