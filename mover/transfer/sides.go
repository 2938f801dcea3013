package transfer

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// remains says that an object of the plan is still to be deleted at the source.
func remains(s *mover.State, item mover.Item) bool { return item.Keep == "" && !s.Deleted[item.Ref] }

// head is what a deletion asks about an object. Those of a large plan are in memory while a level is deleted, so it is no more than that.
// The zero value is that of no object.
type head struct {
	uid        types.UID
	deleting   bool // it is being deleted
	finalizers bool // it has some
	released   bool // a move has taken its finalizers off to delete it
}

// headOf reads an object; nil is none.
func headOf(u *unstructured.Unstructured) head {
	if u == nil {
		return head{}
	}
	return head{uid: u.GetUID(), deleting: u.GetDeletionTimestamp() != nil, finalizers: len(u.GetFinalizers()) > 0, released: released(u)}
}

// heads are objects of a side.
type heads map[object.Ref]head

func headsOf(have objects) heads {
	found := make(heads, len(have))
	for ref, u := range have {
		found[ref] = headOf(u)
	}
	return found
}

// sides is what both sides have of a plan.
type sides struct {
	copies, there heads
	roots         objects // of the source, with whether they are paused
	// unplanned is what the deletion of the plan would remove beside it.
	unplanned []mover.Wait
}

// bothSides is present for both sides in one look. If not everything is asked for, of the source only the kinds of the plan are listed,
// and of the target those of which originals remain there.
func (t *Transfer) bothSides(ctx context.Context, s *mover.State, everything bool) (sides, error) {
	wanted := make(map[object.Ref]bool, len(s.Plan))
	planned := make(map[string]bool)
	var remaining []mover.Item
	for _, item := range s.Plan {
		wanted[item.Ref], planned[item.Ref.GroupKind()] = true, true
		if everything || remains(s, item) {
			remaining = append(remaining, item)
		}
	}
	roots := make(map[object.Ref]bool, len(s.Roots))
	for _, root := range s.Roots {
		wanted[root.Ref], roots[root.Ref] = true, true // its pause is judged
	}
	parts := t.everything(s)
	if !everything {
		parts = slices.DeleteFunc(parts, func(l listing) bool { return !planned[l.typ.GroupKind()] })
	}
	looks := on(t.Source, parts)
	for i, l := range looks {
		looks[i].whole = pause.IsCluster(object.Ref{Group: l.typ.Group, Kind: l.typ.Kind}) // whether it is paused is no metadata
	}
	onto, err := partsOf(t.onto, t.target, remaining)
	if err != nil {
		return sides{}, err
	}
	looks = append(looks, on(t.target, onto)...)
	found := sides{copies: make(heads, len(remaining)), there: make(heads, len(s.Plan)), roots: make(objects, len(s.Roots))}
	b := besidePlan(s.Plan)
	err = t.listSides(ctx, looks, func(c *kube.Cluster, ref object.Ref, u *unstructured.Unstructured) {
		if c == t.target {
			if wanted[ref] {
				found.copies[ref] = headOf(u)
			}
			return
		}
		b.see(object.Observe(u))
		if wanted[ref] {
			found.there[ref] = headOf(u)
		}
		if roots[ref] {
			found.roots[ref] = bare(u)
		}
	})
	found.unplanned = b.found
	return found, err
}

// bare leaves of an object its metadata and, of a Cluster, whether it is paused.
func bare(u *unstructured.Unstructured) *unstructured.Unstructured {
	paused, found, err := unstructured.NestedBool(u.Object, "spec", "paused")
	delete(u.Object, "status")
	delete(u.Object, "spec")
	if found && err == nil {
		u.Object["spec"] = map[string]any{"paused": paused}
	}
	u.SetManagedFields(nil)
	return u
}

// sideListing is a kind in a namespace of a side.
type sideListing struct {
	listing

	side *kube.Cluster
	// whole: with all fields, and not by metadata.
	whole bool
}

func on(c *kube.Cluster, parts []listing) []sideListing {
	list := make([]sideListing, len(parts))
	for i, p := range parts {
		list[i] = sideListing{listing: p, side: c}
	}
	return list
}

// listSides is listAll for both sides at once.
func (t *Transfer) listSides(ctx context.Context, parts []sideListing, see func(*kube.Cluster, object.Ref, *unstructured.Unstructured)) error {
	var mu sync.Mutex
	n := make(counted)
	for _, p := range parts {
		n.listed(p.side, p.listing)
	}
	err := parallel(ctx, t.workers(), parts, func(ctx context.Context, p sideListing) error {
		list := p.side.ListMetadata
		if p.whole {
			list = p.side.List
		}
		return list(ctx, p.typ, p.namespace, func(u *unstructured.Unstructured) error {
			mu.Lock()
			defer mu.Unlock()
			n.add(p.side, p.listing, u.GetNamespace())
			see(p.side, object.Ref{Group: p.typ.Group, Kind: p.typ.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}, u)
			return nil
		})
	})
	if err == nil {
		t.sizes.learn(n)
	}
	return err
}
