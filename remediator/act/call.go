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
	callFor = 10 * time.Second // one try of one call
	// What somebody else wrote in between is read again after firstConflict, then less often.
	firstConflict, lastConflict = 25 * time.Millisecond, 500 * time.Millisecond

	maxConflict = 10 // a controller that writes in between is outwaited; one that never stops is not
)

// call makes one call with a deadline for each try, and tries again only where that can help: what the server refuses
// (403, 404, 409, 422) comes back at once.
func call(ctx context.Context, what string, do func(context.Context) error) error {
	err := kube.Retry(ctx, callFor, do)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// get reads an object live. Not there is apierrors.IsNotFound.
func (e *Executor) get(ctx context.Context, key types.NamespacedName, into client.Object) error {
	return call(ctx, "reading "+key.String(), func(ctx context.Context) error { return e.Client.Get(ctx, key, into) })
}

// change reads an object live, lets amend change it, and writes what amend changed, that alone, and only on the version
// that amend has seen. When somebody wrote in between, amend is asked again about what is there then; so an answer that
// was lost on the way is no second write. Nothing is written where amend changes nothing or fails. The object given is
// only the kind to read, and the version of it.
func change[T client.Object](ctx context.Context, e *Executor, key types.NamespacedName, kind T, amend func(T) error) error {
	return outwait(ctx, func() error {
		return changeOnce(ctx, e, key, kind, amend, func(ctx context.Context, object client.Object, patch client.Patch) error {
			return e.Client.Patch(ctx, object, patch, client.FieldOwner(kube.FieldManager))
		})
	})
}

// changeStatus is change for the status of an object.
func changeStatus[T client.Object](ctx context.Context, e *Executor, key types.NamespacedName, kind T, amend func(T) error) error {
	return outwait(ctx, func() error {
		return changeOnce(ctx, e, key, kind, amend, func(ctx context.Context, object client.Object, patch client.Patch) error {
			return e.Client.Status().Patch(ctx, object, patch, client.FieldOwner(kube.FieldManager))
		})
	})
}

func changeOnce[T client.Object](ctx context.Context, e *Executor, key types.NamespacedName, kind T, amend func(T) error, send func(context.Context, client.Object, client.Patch) error) error {
	object, err := blank(kind) // reading into one that was read before would keep what is no longer there
	if err != nil {
		return err
	}
	if err := e.get(ctx, key, object); err != nil {
		return err
	}
	original, err := blank(object)
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
}

// create makes an object, under scute's name as the writer of its fields.
func (e *Executor) create(ctx context.Context, object client.Object) error {
	return call(ctx, "creating "+client.ObjectKeyFromObject(object).String(), func(ctx context.Context) error {
		return e.Client.Create(ctx, object, client.FieldOwner(kube.FieldManager))
	})
}

// blank is an empty object of the same type.
func blank[T client.Object](object T) (T, error) {
	copied, ok := object.DeepCopyObject().(T)
	if !ok {
		return copied, fmt.Errorf("copying a %T: the copy is a %T", object, copied)
	}
	return copied, nil
}

// outwait tries again, soon and a bounded number of times, where somebody else wrote in between.
func outwait(ctx context.Context, once func() error) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstConflict), backoff.WithMaxInterval(lastConflict))
	return backoff.Retry(func() error {
		err := once()
		if err != nil && !apierrors.IsConflict(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(b, maxConflict), ctx))
}
