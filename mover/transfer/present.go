package transfer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// present observes which objects of a plan a side has, by metadata alone: one list for each kind and namespace. Steps
// that write begin with it, so that what an earlier process did is seen and not done again.
func (t *Transfer) present(ctx context.Context, c *kube.Cluster, types map[string]kube.Type, plan []mover.Item) (map[object.Ref]*unstructured.Unstructured, error) {
	wanted := make(map[object.Ref]bool, len(plan))
	listed := make(map[part]bool)
	var parts []listing
	for _, item := range plan {
		wanted[item.Ref] = true
		typ, err := typeOf(types, c, item.Ref, item.Version)
		if err != nil {
			return nil, err
		}
		key := part{group: item.Ref.GroupKind(), namespace: item.Ref.Namespace}
		if !listed[key] {
			listed[key] = true
			parts = append(parts, listing{typ, item.Ref.Namespace})
		}
	}
	var mu sync.Mutex
	found := make(map[object.Ref]*unstructured.Unstructured, len(plan))
	err := parallel(ctx, t.workers(), parts, func(ctx context.Context, p listing) error {
		return c.ListMetadata(ctx, p.typ, p.namespace, func(u *unstructured.Unstructured) error {
			ref := object.Ref{Group: p.typ.Group, Kind: p.typ.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
			mu.Lock()
			defer mu.Unlock()
			if wanted[ref] {
				found[ref] = u
			}
			return nil
		})
	})
	return found, err
}

// part identifies a listing.
type part struct{ group, namespace string }
