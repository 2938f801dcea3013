package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/internal/redact"
	"scute.dev/kube"
	"scute.dev/workflow/task"
)

const (
	lookFirst = 500 * time.Millisecond
	lookMax   = 2 * time.Second
	// Where nothing has changed for long, the time between two looks is this share of it, and no longer than lookLongest.
	lookShare   = 30
	lookLongest = 30 * time.Second
)

// Poll looks until there is nothing to wait for. look says what it waits for, "" for nothing more; its error ends the
// wait, unless it may pass by itself: an API server that is being upgraded comes back. Hundreds of tasks may wait for days, and each look
// asks the API server. Others work in the place of the run between two looks: who has more to do after a Poll asks to work again.
func Poll(ctx context.Context, c *task.Call, look func(context.Context) (waitsFor string, err error)) error {
	pause, last, since := lookFirst, "", time.Now()
	for {
		waitsFor, err := look(ctx)
		switch {
		case err == nil && waitsFor == "":
			return nil
		case err != nil && (task.IsFinal(err) || !passes(err)):
			return err
		case err != nil && ctx.Err() == nil:
			waitsFor = redact.Message(err.Error())
		case err != nil: // the look was cut short: what was seen before tells more
			waitsFor = last
		}
		c.OnlyWaits()
		if waitsFor != last && waitsFor != "" && c.Progress != nil {
			c.Progress(waitsFor)
		}
		if waitsFor != last {
			last, since = waitsFor, time.Now()
		}
		if err := Sleep(ctx, max(pause, min(time.Since(since)/lookShare, lookLongest))); err != nil {
			if last == "" {
				return err
			}
			return fmt.Errorf("%w: %s", err, last)
		}
		pause = min(pause*3/2, lookMax)
	}
}

// NewPace gives the pauses between looks at a cluster that changes: short ones first, and never an end.
func NewPace() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
}

// Sleep waits for a time, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// passes says whether an error of a look may pass: kube.Passing, and the end of the look's context.
func passes(err error) bool {
	var failed *failedObjectError
	if errors.As(err, &failed) {
		return false
	}
	return kube.Passing(err) || apierrors.IsUnauthorized(err) || errors.Is(err, context.Canceled)
}

// failedObjectError is an object that says that it has failed. Waiting on does not help; another attempt may.
type failedObjectError struct{ err error }

func (f *failedObjectError) Error() string { return f.err.Error() }

func (f *failedObjectError) Unwrap() error { return f.err }

// FailedObject marks an error that ends a poll: an object says that it has failed.
func FailedObject(err error) error { return &failedObjectError{err} }
