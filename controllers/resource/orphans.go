package resource

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// Orphans is the name of a resource, and the objects in the log that resources of this name requested.
type Orphans struct {
	Kind string
	Key  client.ObjectKey
	// UID is the UID of the resource in the cache, or empty if the cache has none.
	UID types.UID
	// Open are the IDs of the objects that have not ended. Own is the ID of the object that belongs
	// to the resource in the cache, or empty if it must end, too.
	Open []string
	Own  string
}

// End ends the open objects whose resource had the same name as the resource in the cache but was
// deleted. Such a resource was deleted after its finalizer was removed by hand, or before the view
// contained its request.
//
// It reads the resource with live before it ends an object, because the cache may lag and an ended
// object cannot be continued. If the API server returns a different resource than the cache, End
// fails, and the caller retries.
func (n Orphans) End(ctx context.Context, live client.Reader, end func(id, reason string) error) error {
	checked := false
	for _, id := range n.Open {
		if n.UID != "" && id == n.Own {
			continue
		}
		if !checked {
			if err := n.checkCache(ctx, live); err != nil {
				return err
			}
			checked = true
		}
		if err := end(id, "its "+n.Kind+" was deleted"); err != nil {
			return fmt.Errorf("ending %s, whose %s was deleted: %w", id, n.Kind, err)
		}
	}
	return nil
}

// checkCache returns an error unless the API server and the cache have the same resource.
func (n Orphans) checkCache(ctx context.Context, live client.Reader) error {
	var current metav1.PartialObjectMetadata
	current.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(n.Kind))
	err := live.Get(ctx, n.Key, &current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("getting the %s %s: %w", n.Kind, n.Key, err)
	}
	if current.UID != n.UID {
		return fmt.Errorf("the cache does not have the current %s %s yet", n.Kind, n.Key)
	}
	return nil
}
