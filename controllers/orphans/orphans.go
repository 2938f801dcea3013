package orphans

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// Name is the name of a resource, and what is there by it.
type Name struct {
	Kind string
	Key  client.ObjectKey
	// UID is that of the resource in the cache; empty if the cache has none.
	UID types.UID
	// Open are the ids of what the log drives for the resources of this name, and Own is the one of the resource in the cache, if it keeps it.
	Open []string
	Own  string
}

// End ends what is open for another resource of the name than the one in the cache: for one that is gone, because its finalizer was removed
// by hand, or it was deleted before the view knew that it had asked for something.
//
// A cache may lag, and what has ended cannot be continued. So the API server is asked by live before anything ends. If it has another
// resource than the cache, End fails, and the caller tries again.
func (n Name) End(ctx context.Context, live client.Reader, end func(id, reason string) error) error {
	looked := false
	for _, id := range n.Open {
		if n.UID != "" && id == n.Own {
			continue
		}
		if !looked {
			if err := n.look(ctx, live); err != nil {
				return err
			}
			looked = true
		}
		if err := end(id, "its "+n.Kind+" is gone"); err != nil {
			return fmt.Errorf("ending %s, whose %s is gone: %w", id, n.Kind, err)
		}
	}
	return nil
}

// look fails unless the API server has what the cache has.
func (n Name) look(ctx context.Context, live client.Reader) error {
	var current metav1.PartialObjectMetadata
	current.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(n.Kind))
	err := live.Get(ctx, n.Key, &current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for the %s %s: %w", n.Kind, n.Key, err)
	}
	if current.UID != n.UID {
		return fmt.Errorf("the %s %s is not yet in the cache as the API server has it", n.Kind, n.Key)
	}
	return nil
}
