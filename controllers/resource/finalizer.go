package resource

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// AddFinalizer adds a finalizer. set is false if the object already has it. It ignores an object
// that is gone. It fails if another client has written the object since it was read, because all
// writers share one list of finalizers.
func AddFinalizer(ctx context.Context, c client.Client, o client.Object, finalizer string) (set bool, err error) {
	return changeFinalizers(ctx, c, o, finalizer, controllerutil.AddFinalizer)
}

// RemoveFinalizer removes a finalizer if the object exists and has it. It fails as AddFinalizer does.
func RemoveFinalizer(ctx context.Context, c client.Client, o client.Object, finalizer string) error {
	_, err := changeFinalizers(ctx, c, o, finalizer, controllerutil.RemoveFinalizer)
	return err
}

func changeFinalizers(
	ctx context.Context, c client.Client, o client.Object, finalizer string, change func(client.Object, string) bool,
) (bool, error) {
	before := o.DeepCopyObject().(client.Object) //nolint:errcheck,forcetypeassert // a copy has the type of the original
	if !change(o, finalizer) {
		return false, nil
	}
	err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("writing the finalizers: %w", err)
	}
	return true, nil
}
