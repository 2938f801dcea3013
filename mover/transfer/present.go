package transfer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// present observes which objects of a plan a side has, by metadata alone: one list for each kind and namespace. Steps
// that write begin with it, so that what an earlier process did is seen and not done again.
func (t *Transfer) present(ctx context.Context, c *kube.Cluster, kinds map[string]kube.Type, plan []mover.Item) (objects, error) {
	wanted := make(map[object.Ref]bool, len(plan))
	listed := make(map[part]bool)
	var parts []listing
	for _, item := range plan {
		wanted[item.Ref] = true
		typ, err := typeOf(kinds, c, item.Ref, item.Version)
		if err != nil {
			return nil, err
		}
		key := part{group: item.Ref.GroupKind(), namespace: item.Ref.Namespace}
		if !listed[key] {
			listed[key] = true
			parts = append(parts, listing{typ, item.Ref.Namespace})
		}
	}
	found := make(objects, len(plan))
	return found, t.listAll(ctx, c, parts, func(ref object.Ref, u *unstructured.Unstructured) {
		if wanted[ref] {
			found[ref] = u
		}
	})
}

// dependants is present for the source, with everything else that the deletion of the plan would remove: an object that
// is not in the plan, and is owned by one that the plan deletes. The garbage collector removes it, because its owner is
// gone.
func (t *Transfer) dependants(ctx context.Context, s *mover.State) (there objects, unplanned []mover.Wait, err error) {
	moves := make(map[types.UID]object.Ref, len(s.Plan))
	wanted := make(map[object.Ref]bool, len(s.Plan))
	planned := make(map[types.UID]bool, len(s.Plan))
	namespaces := map[string]bool{s.Spec.Namespace: true}
	for _, item := range s.Plan {
		wanted[item.Ref], planned[item.UID] = true, true
		if item.Keep == "" {
			moves[item.UID] = item.Ref
		}
		if item.Ref.Namespace != "" {
			namespaces[item.Ref.Namespace] = true
		}
	}
	there = make(objects, len(s.Plan))
	err = t.listAll(ctx, t.Source, t.everything(s.Spec.Namespace, namespaces), func(ref object.Ref, u *unstructured.Unstructured) {
		if wanted[ref] {
			there[ref] = u
		}
		if planned[u.GetUID()] || ref.Group == object.OwnGroup || u.GetDeletionTimestamp() != nil {
			return
		}
		for _, owner := range u.GetOwnerReferences() {
			if of, ok := moves[owner.UID]; ok {
				unplanned = append(unplanned, mover.Wait{Ref: ref, Why: "it is not in the plan, and " + of.String() + ", which moves, owns it"})
				return
			}
		}
	})
	return there, unplanned, err
}

// everything is what a move looks at in the given namespaces, its own among them.
func (t *Transfer) everything(own string, namespaces map[string]bool) []listing {
	var parts []listing
	for _, typ := range t.types {
		switch {
		case !typ.Namespaced:
			parts = append(parts, listing{typ, ""})
		case typ.Plain():
			parts = append(parts, listing{typ, own})
		default:
			for namespace := range namespaces {
				parts = append(parts, listing{typ, namespace})
			}
		}
	}
	return parts
}

// listAll hands the metadata of every object to see, one at a time.
func (t *Transfer) listAll(ctx context.Context, c *kube.Cluster, parts []listing, see func(object.Ref, *unstructured.Unstructured)) error {
	var mu sync.Mutex
	counted := make(sizes)
	defer func() { t.sizes = t.sizes.with(counted) }()
	return parallel(ctx, t.workers(), parts, func(ctx context.Context, p listing) error {
		return c.ListMetadata(ctx, p.typ, p.namespace, func(u *unstructured.Unstructured) error {
			mu.Lock()
			defer mu.Unlock()
			counted.add(c, p.typ, u.GetNamespace())
			see(object.Ref{Group: p.typ.Group, Kind: p.typ.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}, u)
			return nil
		})
	})
}

// part identifies a listing.
type part struct{ group, namespace string }
