package resource

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer sets a finalizer on an object. set is false if the object already has it. It fails if another client has written the object since it was read,
// because all writers share one list of finalizers. It ignores an object that does not exist.
func AddFinalizer(ctx context.Context, c client.Client, o client.Object, finalizer string) (set bool, err error) {
	before := deepCopy(o)
	if !controllerutil.AddFinalizer(o, finalizer) {
		return false, nil
	}
	return true, patchFinalizers(ctx, c, before, o)
}

// RemoveFinalizer removes a finalizer from an object, if the object exists and has it. It fails as AddFinalizer does.
func RemoveFinalizer(ctx context.Context, c client.Client, o client.Object, finalizer string) error {
	before := deepCopy(o)
	if !controllerutil.RemoveFinalizer(o, finalizer) {
		return nil
	}
	return patchFinalizers(ctx, c, before, o)
}

func patchFinalizers(ctx context.Context, c client.Client, before, after client.Object) error {
	err := c.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the finalizers: %w", err)
	}
	return nil
}

func deepCopy(o client.Object) client.Object {
	return o.DeepCopyObject().(client.Object) //nolint:errcheck,forcetypeassert // a copy has the type of the original
}
