package resource

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// Orphans are the objects in the log that resources with one name requested.
type Orphans struct {
	Kind string
	Key  client.ObjectKey
	// UID is the UID of the resource in the cache, empty if there is none.
	UID types.UID
	// Open are the IDs of the unfinished objects. Own is the ID of the object of the resource in
	// the cache, empty if that object must end too.
	Open []string
	Own  string
}

// End ends the open objects whose resource was deleted, although a resource with its name may
// exist. That happens if the finalizer was removed by hand, or before the view contained the
// request. The cache may lag and an ended object cannot be continued. Therefore End first reads the
// resource with live, and fails if the API server and the cache have different resources.
func (n Orphans) End(ctx context.Context, live client.Reader, end func(ctx context.Context, id, actor, reason string) error) error {
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
		if err := end(ctx, id, Actor(n.Key), "its "+n.Kind+" was deleted"); err != nil {
			return fmt.Errorf("ending %s, whose %s was deleted: %w", id, n.Kind, err)
		}
	}
	return nil
}

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
