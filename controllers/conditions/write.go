package conditions

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Write patches the status of an object where it is another one than before; of the rest, nothing may have changed. written is
// false where both are stored as the same (times are stored in seconds, and a status is made with parts of them), and where the
// object is gone.
func Write(ctx context.Context, c client.Client, before, after client.Object) (written bool, err error) {
	patch, err := client.MergeFrom(before).Data(after)
	if err == nil && string(patch) == "{}" {
		return false, nil
	}
	if err == nil {
		err = c.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, patch))
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	return err == nil, nil
}
