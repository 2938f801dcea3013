package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"scute.dev/kube/guard"
)

const (
	retryFirst = 100 * time.Millisecond
	retryMax   = 2 * time.Second
	retryFor   = 15 * time.Second
)

// Do makes a call with a timeout for each attempt, and retries for 15 s with backoff and jitter if
// the server was unreachable, overloaded or failed. Rejections (403, 404, 409, 422) are returned at
// once.
func (c *Cluster) Do(ctx context.Context, what string, call func(context.Context) error) error {
	err := Retry(ctx, callTimeout, call)
	var stop *callbackError
	switch {
	case errors.As(err, &stop):
		return stop.err
	case err != nil:
		return fmt.Errorf("%s: %s: %w", c.Name, what, withoutValues(err))
	default:
		return nil
	}
}

// Retry works like Cluster.Do, for a call with another client. each is the timeout of one attempt.
// It returns the error of the last attempt.
func Retry(ctx context.Context, each time.Duration, call func(context.Context) error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(retryFirst), backoff.WithMaxInterval(retryMax), backoff.WithMaxElapsedTime(retryFor))
	return backoff.Retry(func() error {
		ctx, cancel := context.WithTimeout(ctx, each)
		defer cancel()
		err := call(ctx)
		if err != nil && !IsTransient(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx))
}

// ForEach calls work for every item, at most limit at once, until one call fails.
func ForEach[T any](ctx context.Context, limit int, items []T, work func(context.Context, T) error) error {
	group, both := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for _, item := range items {
		if both.Err() != nil {
			break
		}
		group.Go(func() error { return work(both, item) })
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// callbackError is an error of a callback, which is never retried.
type callbackError struct{ err error }

func (s *callbackError) Error() string { return s.err.Error() }

// IsTransient reports whether a retry may succeed.
func IsTransient(err error) bool {
	var stop *callbackError
	switch {
	case err == nil, errors.As(err, &stop), errors.Is(err, context.Canceled):
		return false
	case apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		return true
	case errors.Is(err, guard.ErrDenied), errors.Is(err, guard.ErrTooLarge), errors.Is(err, guard.ErrRedirect), errors.Is(err, guard.ErrFormat), meta.IsNoMatchError(err):
		return false
	case errors.Is(err, context.DeadlineExceeded), utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err),
		utilnet.IsProbableEOF(err), utilnet.IsTimeout(err), utilnet.IsHTTP2ConnectionLost(err):
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError && code != http.StatusNotImplemented && !IsSchemaMismatch(err)
	}
	return true // a network error, not a response
}

// IsSchemaMismatch reports whether a server-side apply failed because the object's types do not
// match its schema. The API server answers 500 (managedfields/internal/structuredmerge.go in
// k8s.io/apimachinery).
func IsSchemaMismatch(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(status.Status().Message, "failed to create typed patch object")
}

const maxNamedCauses = 10

// withoutValues returns an API server's rejection of an object (422) without the rejected values,
// and with the names of all rejected fields. The API server quotes each value, which may be a
// password, and webhooks quote it again.
func withoutValues(err error) error {
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) || !apierrors.IsInvalid(err) || refused.ErrStatus.Details == nil || len(refused.ErrStatus.Details.Causes) == 0 {
		return err
	}
	clean := &apierrors.StatusError{ErrStatus: *refused.ErrStatus.DeepCopy()}
	details := clean.ErrStatus.Details
	var fields []string
	for i := range details.Causes {
		c := &details.Causes[i]
		switch c.Type {
		case metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueDuplicate, metav1.CauseTypeFieldValueNotSupported,
			metav1.CauseTypeFieldValueNotFound, metav1.CauseTypeTypeInvalid:
			c.Message, _, _ = strings.Cut(c.Message, ":")
		}
		fields = append(fields, strings.TrimPrefix(c.Field+": "+c.Message, ": "))
	}
	if more := len(fields) - maxNamedCauses; more > 0 {
		fields = append(fields[:maxNamedCauses], fmt.Sprintf("and %d more", more))
	}
	clean.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %s", details.Kind, details.Name, strings.Join(fields, "; "))
	return clean
}
