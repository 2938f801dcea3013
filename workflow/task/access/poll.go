package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/internal/redact"
	"scute.dev/internal/sleep"
	"scute.dev/kube"
	"scute.dev/workflow/task"
)

const (
	pollFirst = 500 * time.Millisecond
	pollMax   = 2 * time.Second
	// After a long time t without a change, the interval is t/pollShare, but at most pollLongest.
	pollShare   = 30
	pollLongest = 30 * time.Second
)

// Poll calls look until it returns "" or an error, and reports what it waits for. It retries
// transient errors, such as those during an upgrade of the API server. The interval grows, because
// hundreds of tasks may wait for days. During the wait, other runs may use the run's slot, so a
// caller that makes more than a few requests after Poll must first call task.Call.ReacquireSlot.
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
		if err := sleep.For(ctx, max(pause, min(time.Since(since)/pollShare, pollLongest))); err != nil {
			if last == "" {
				return err
			}
			return fmt.Errorf("%w: %s", err, last)
		}
		pause = min(pause*3/2, pollMax)
	}
}

// NewBackoff returns the backoff for polling a cluster: it starts with short intervals and never ends.
func NewBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
}

// isTransient reports whether a request may be retried: after an error that kube.IsTransient
// accepts, after Unauthorized, and after the context of a single request ended.
func isTransient(err error) bool {
	var failed *failedObjectError
	if errors.As(err, &failed) {
		return false
	}
	return kube.IsTransient(err) || apierrors.IsUnauthorized(err) || errors.Is(err, context.Canceled)
}

// failedObjectError means that an object reports a failure. Waiting for the object does not help,
// but another attempt may.
type failedObjectError struct{ error }

func (f *failedObjectError) Unwrap() error { return f.error }

// FailedObject returns an error that ends a poll because an object's status reports a failure.
func FailedObject(err error) error { return &failedObjectError{err} }
