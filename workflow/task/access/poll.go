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
	pollFirst = 500 * time.Millisecond
	pollMax   = 2 * time.Second
	// If nothing has changed for a long time, the interval is that time divided by pollShare, and at most pollLongest.
	pollShare   = 30
	pollLongest = 30 * time.Second
)

// Poll calls look until it returns "" or an error, and reports what it waits for as progress. It
// retries transient errors, for example of an API server that is being upgraded. The interval
// grows, because hundreds of tasks may wait for days. Between two calls other runs may use the
// run's slot. A caller with more than a few requests after Poll must call task.Call.ReacquireSlot
// first.
func Poll(ctx context.Context, c *task.Call, look func(context.Context) (waitsFor string, err error)) error {
	pause, last, since := pollFirst, "", time.Now()
	for {
		waitsFor, err := look(ctx)
		switch {
		case err == nil && waitsFor == "":
			return nil
		case err != nil && (task.IsFinal(err) || !isTransient(err)):
			return err
		case err != nil && ctx.Err() == nil:
			waitsFor = redact.Message(err.Error())
		case err != nil: // ctx has ended: the previous message is more useful
			waitsFor = last
		}
		c.YieldSlot()
		if waitsFor != last && waitsFor != "" && c.Progress != nil {
			c.Progress(waitsFor)
		}
		if waitsFor != last {
			last, since = waitsFor, time.Now()
		}
		if err := Sleep(ctx, max(pause, min(time.Since(since)/pollShare, pollLongest))); err != nil {
			if last == "" {
				return err
			}
			return fmt.Errorf("%w: %s", err, last)
		}
		pause = min(pause*3/2, pollMax)
	}
}

// NewBackoff returns the backoff for polling a cluster: short intervals first, without an end.
func NewBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
}

// Sleep waits for a duration, or until ctx ends.
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

// isTransient reports whether an error of look may be transient: kube.IsTransient, Unauthorized, or
// the end of a request's context.
func isTransient(err error) bool {
	var failed *failedObjectError
	if errors.As(err, &failed) {
		return false
	}
	return kube.IsTransient(err) || apierrors.IsUnauthorized(err) || errors.Is(err, context.Canceled)
}

// failedObjectError is the error for an object whose status reports a failure. Waiting does not
// help, but another attempt may.
type failedObjectError struct{ err error }

func (f *failedObjectError) Error() string { return f.err.Error() }

func (f *failedObjectError) Unwrap() error { return f.err }

// FailedObject returns an error that ends a poll, for an object whose status reports a failure.
func FailedObject(err error) error { return &failedObjectError{err} }
