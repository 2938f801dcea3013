package act

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
)

const (
	callTimeout = 10 * time.Second // timeout of one attempt
	// After a conflict, the object is read again after firstConflict, then at longer intervals up to lastConflict.
	firstConflict, lastConflict = 25 * time.Millisecond, 500 * time.Millisecond

	maxConflict = 10 // enough for a controller that writes in between, but not for one that never stops
)

// call makes one call with a timeout for each attempt. It retries only if that can help: refusals of the server (403, 404, 409, 422) are returned at
// once.
func call(ctx context.Context, what string, do func(context.Context) error) error {
	err := kube.Retry(ctx, callTimeout, do)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// get reads an object live. The error for a missing object is apierrors.IsNotFound.
func (e *Executor) get(ctx context.Context, key types.NamespacedName, into client.Object) error {
	return call(ctx, "reading "+key.String(), func(ctx context.Context) error { return e.Client.Get(ctx, key, into) })
}

// patcher sends a patch of an object, or of its status.
type patcher func(context.Context, client.Object, client.Patch) error

func (e *Executor) patch(ctx context.Context, object client.Object, patch client.Patch) error {
	return e.Client.Patch(ctx, object, patch, client.FieldOwner(kube.FieldManager))
}

func (e *Executor) patchStatus(ctx context.Context, object client.Object, patch client.Patch) error {
	return e.Client.Status().Patch(ctx, object, patch, client.FieldOwner(kube.FieldManager))
}

// change reads an object live, lets amend change it, and patches only what amend changed, only in the version that amend received. After a conflict,
// it calls amend again with the current object; so a lost response causes no second write. It writes nothing if amend fails or changes nothing. kind
// only determines the kind and version to read.
func change[T client.Object](ctx context.Context, e *Executor, key types.NamespacedName, kind T, send patcher, amend func(T) error) error {
	return retryOnConflict(ctx, func() error {
		object, err := deepCopy(kind) // decoding into an object that was read before would keep removed fields
		if err != nil {
			return err
		}
		if err := e.get(ctx, key, object); err != nil {
			return err
		}
		original, err := deepCopy(object)
		if err != nil {
			return err
		}
		if err := amend(object); err != nil {
			return err
		}
		changes, err := client.MergeFrom(original).Data(object)
		if err != nil {
			return fmt.Errorf("comparing %s: %w", key, err)
		}
		if string(changes) == "{}" {
			return nil
		}
		patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
		return call(ctx, "writing "+key.String(), func(ctx context.Context) error { return send(ctx, object, patch) })
	})
}

func (e *Executor) create(ctx context.Context, object client.Object) error {
	return call(ctx, "creating "+client.ObjectKeyFromObject(object).String(), func(ctx context.Context) error {
		return e.Client.Create(ctx, object, client.FieldOwner(kube.FieldManager))
	})
}

func deepCopy[T client.Object](object T) (T, error) {
	copied, ok := object.DeepCopyObject().(T)
	if !ok {
		return copied, fmt.Errorf("copying a %T: the copy is a %T", object, copied)
	}
	return copied, nil
}

// retryOnConflict retries after conflicts, with a short and growing delay and a limited number of times. retry.RetryOnConflict of client-go returns nil
// if the context ends.
func retryOnConflict(ctx context.Context, once func() error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstConflict), backoff.WithMaxInterval(lastConflict))
	return backoff.Retry(func() error {
		err := once()
		if err != nil && !apierrors.IsConflict(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(b, maxConflict), ctx))
}
