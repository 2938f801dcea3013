package transfer

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// present observes which objects of a plan a side has, by metadata alone: one list for each kind and namespace. Steps
// that write begin with it, so that what an earlier process did is seen and not done again.
func (t *Transfer) present(ctx context.Context, c *kube.Cluster, kinds map[string]kube.Type, plan []mover.Item) (objects, error) {
	parts, err := partsOf(kinds, c, plan)
	if err != nil {
		return nil, err
	}
	wanted := make(map[object.Ref]bool, len(plan))
	for _, item := range plan {
		wanted[item.Ref] = true
	}
	found := make(objects, len(plan))
	return found, t.listAll(ctx, c, parts, func(ref object.Ref, u *unstructured.Unstructured) {
		if wanted[ref] {
			found[ref] = u
		}
	})
}

// partsOf are the kinds and namespaces of a plan on a side.
func partsOf(kinds map[string]kube.Type, c *kube.Cluster, plan []mover.Item) (parts []listing, err error) {
	listed := make(map[part]bool)
	for _, item := range plan {
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
	return parts, nil
}

// beside finds what the deletion of a plan would remove beside it: an object that is not in the plan, and is owned by one that the
// plan deletes. The garbage collector removes it, because its owner is gone.
type beside struct {
	moves   map[types.UID]object.Ref
	planned map[types.UID]bool
	found   []mover.Wait
}

func besidePlan(plan []mover.Item) *beside {
	b := &beside{moves: make(map[types.UID]object.Ref, len(plan)), planned: make(map[types.UID]bool, len(plan))}
	for _, item := range plan {
		b.planned[item.UID] = true
		if item.Keep == "" {
			b.moves[item.UID] = item.Ref
		}
	}
	return b
}

func (b *beside) see(o object.Observed) {
	if b.planned[o.UID] || o.Ref.Group == object.OwnGroup || o.Deleting {
		return
	}
	for _, owner := range o.Owners {
		if of, ok := b.moves[owner.UID]; ok {
			b.found = append(b.found, mover.Wait{Ref: o.Ref, Why: "it is not in the plan, and " + of.String() + ", which moves, owns it"})
			return
		}
	}
}

// unplanned is what bothSides finds beside the plan, in a look at the source that was just taken. Only what that look did not
// list is listed.
func (t *Transfer) unplanned(ctx context.Context, s *mover.State, w *world) ([]mover.Wait, error) {
	b := besidePlan(s.Plan)
	for _, o := range w.objects {
		b.see(o)
	}
	rest := slices.DeleteFunc(t.everything(s), func(l listing) bool { return w.has(l) })
	if err := t.listAll(ctx, t.Source, rest, func(_ object.Ref, u *unstructured.Unstructured) { b.see(object.Observe(u)) }); err != nil {
		return nil, err
	}
	if len(b.found) == 0 {
		t.lookedAt = w.at
	}
	return b.found, nil
}

// everything is what a move looks at in its own namespace and in those of its plan.
func (t *Transfer) everything(s *mover.State) []listing {
	own := s.Spec.Namespace
	namespaces := map[string]bool{own: true}
	for _, item := range s.Plan {
		if item.Ref.Namespace != "" {
			namespaces[item.Ref.Namespace] = true
		}
	}
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
	return t.listSides(ctx, on(c, parts), func(_ *kube.Cluster, ref object.Ref, u *unstructured.Unstructured) { see(ref, u) })
}

// part identifies a listing.
type part struct{ group, namespace string }
