package transfer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// remains reports whether an object of the plan must still be deleted at the source.
func remains(s *mover.State, item mover.Item) bool { return item.Keep == "" && !s.Deleted[item.Ref] }

// head has what a deletion needs of an object, and no more: the heads of a large plan are in memory while a level is deleted. The zero
// value represents no object.
type head struct {
	uid        types.UID
	deleting   bool // it is being deleted
	finalizers bool // it has some
	released   bool // a move has taken its finalizers off to delete it
}

// headOf returns the head of an object, which may be nil.
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

// sides has what both sides have of a plan.
type sides struct {
	copies, there heads
	roots         objects // of the source, with whether they are paused
	// unplanned is what the deletion of the plan would remove beside it.
	unplanned []mover.Wait
}

// bothSides lists both sides at the same time. Unless everything is wanted, it lists at the source only the kinds of the plan, and at the
// target only the kinds of objects that remain at the source.
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
	b := dependantsOf(s.Plan)
	err = t.listSides(ctx, looks, func(c *kube.Cluster, ref object.Ref, u *unstructured.Unstructured) {
		if c == t.target {
			if wanted[ref] {
				found.copies[ref] = headOf(u)
			}
			return
		}
		b.add(object.Observe(u))
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

// bare removes all fields of an object but its metadata and spec.paused.
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

// listSides lists both sides at the same time, and calls see with one object at a time.
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

// present returns the metadata of the objects of a plan that a side has, with one list for each kind and namespace. Steps that write begin
// with it, so that nothing is repeated that an earlier process did.
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

// partsOf returns the kinds and namespaces of a plan.
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

// dependants finds what the deletion of a plan would also remove: an object that is not in the plan, and is owned by one that the
// plan deletes. The garbage collector removes it, because its owner is gone.
type dependants struct {
	moves   map[types.UID]object.Ref
	planned map[types.UID]bool
	found   []mover.Wait
}

func dependantsOf(plan []mover.Item) *dependants {
	b := &dependants{moves: make(map[types.UID]object.Ref, len(plan)), planned: make(map[types.UID]bool, len(plan))}
	for _, item := range plan {
		b.planned[item.UID] = true
		if item.Keep == "" {
			b.moves[item.UID] = item.Ref
		}
	}
	return b
}

func (b *dependants) add(o object.Observed) {
	if owner, owned := ownerAmong(b.moves, o); owned && !b.planned[o.UID] {
		b.found = append(b.found, mover.Wait{Ref: o.Ref, Why: "it is not in the plan, and " + owner.String() + ", which moves, owns it"})
	}
}

// unplanned is what bothSides finds beside the plan, in a look at the source that was just taken. Only what that look did not
// list is listed.
func (t *Transfer) unplanned(ctx context.Context, s *mover.State, w *snapshot) ([]mover.Wait, error) {
	b := dependantsOf(s.Plan)
	for _, o := range w.objects {
		b.add(o)
	}
	rest := slices.DeleteFunc(t.everything(s), func(l listing) bool { return w.has(l) })
	if err := t.listAll(ctx, t.Source, rest, func(_ object.Ref, u *unstructured.Unstructured) { b.add(object.Observe(u)) }); err != nil {
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

// listAll calls see with the metadata of every object, one at a time.
func (t *Transfer) listAll(ctx context.Context, c *kube.Cluster, parts []listing, see func(object.Ref, *unstructured.Unstructured)) error {
	return t.listSides(ctx, on(c, parts), func(_ *kube.Cluster, ref object.Ref, u *unstructured.Unstructured) { see(ref, u) })
}

// part identifies a listing.
type part struct{ group, namespace string }

// sizes counts the objects of a kind that a side had in a namespace when they were last listed. The zero value is ready for use.
type sizes struct {
	mu     sync.Mutex
	counts map[size]int
}

type size struct {
	side string
	part
}

// counted are the sizes of one look.
type counted map[size]int

// listed notes a kind in a namespace before its objects are counted: it may have none.
func (n counted) listed(c *kube.Cluster, l listing) { n[sizeOf(c, l)] = 0 }

// add counts an object of a listing, and of its namespace where the listing is of all of them.
func (n counted) add(c *kube.Cluster, l listing, namespace string) {
	n[sizeOf(c, l)]++
	if namespace != l.namespace {
		n[sizeOf(c, listing{l.typ, namespace})]++
	}
}

func sizeOf(c *kube.Cluster, l listing) size {
	return size{c.Name, part{l.typ.GroupKind(), l.namespace}}
}

// learn puts the sizes of a look in the place of earlier ones.
func (s *sizes) learn(later counted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[size]int)
	}
	maps.Copy(s.counts, later)
}

// of returns the number of objects, 0 also if nothing was listed.
func (s *sizes) of(c *kube.Cluster, l listing) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[sizeOf(c, l)]
}

// empty reports whether a listing had no objects when it was last made.
func (s *sizes) empty(c *kube.Cluster, l listing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.counts[sizeOf(c, l)]
	return known && n == 0
}
