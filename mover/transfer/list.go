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

// head contains the fields of an object that a deletion needs. It is small because the heads of a large plan are in memory while a level is deleted.
// The zero value represents no object.
type head struct {
	uid        types.UID
	deleting   bool
	finalizers bool
	released   bool // a move has removed its finalizers in order to delete it
}

// headOf returns the head of an object, which may be nil.
func headOf(u *unstructured.Unstructured) head {
	if u == nil {
		return head{}
	}
	return head{uid: u.GetUID(), deleting: u.GetDeletionTimestamp() != nil, finalizers: len(u.GetFinalizers()) > 0, released: released(u)}
}

// heads contains the heads of objects of one side, the source or the target.
type heads map[object.Ref]head

func headsOf(have objects) heads {
	found := make(heads, len(have))
	for ref, u := range have {
		found[ref] = headOf(u)
	}
	return found
}

// sides contains the objects of a plan that the two sides have.
type sides struct {
	copies, there heads
	roots         objects // of the source, with spec.paused
	// unplanned contains the objects outside the plan that its deletion would also delete.
	unplanned []mover.Wait
}

// bothSides lists both sides at the same time. Unless everything is set, it lists only the kinds of the plan at the source, and at the target only
// the kinds of objects that remain at the source.
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
		wanted[root.Ref], roots[root.Ref] = true, true // because its pause is checked
	}
	parts := t.everything(s)
	if !everything {
		parts = slices.DeleteFunc(parts, func(l listing) bool { return !planned[l.typ.GroupKind()] })
	}
	looks := on(t.Source, parts)
	for i, l := range looks {
		looks[i].whole = pause.IsCluster(object.Ref{Group: l.typ.Group, Kind: l.typ.Kind}) // because spec.paused is not metadata
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

// bare removes all fields of an object except its metadata and spec.paused.
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

// sideListing is a listing on one side.
type sideListing struct {
	listing

	side *kube.Cluster
	// whole lists the entire objects instead of their metadata.
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

// present returns the metadata of the planned objects that a side has. It makes one list request for each kind and namespace. Steps that write call
// it first, so that they do not repeat the work of an earlier process.
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

// dependants collects objects that the deletion of a plan would also delete: objects outside the plan that are owned by an object the plan deletes.
// The garbage collector deletes them with their owner.
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

// unplanned returns the dependants in a snapshot of the source that was just taken. It lists only what the snapshot lacks.
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

// everything returns the listings of all kinds that a move reads in its own namespace and in the namespaces of its plan.
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

// sizes contains the number of objects per kind, namespace and side at the last listing. The zero value is ready for use.
type sizes struct {
	mu     sync.Mutex
	counts map[size]int
}

type size struct {
	side string
	part
}

// counted contains the sizes of one pass of listings.
type counted map[size]int

// listed records a listing before its objects are counted, because it may contain none.
func (n counted) listed(c *kube.Cluster, l listing) { n[sizeOf(c, l)] = 0 }

// add counts an object for its listing, and also for its namespace if the listing covers all namespaces.
func (n counted) add(c *kube.Cluster, l listing, namespace string) {
	n[sizeOf(c, l)]++
	if namespace != l.namespace {
		n[sizeOf(c, listing{l.typ, namespace})]++
	}
}

func sizeOf(c *kube.Cluster, l listing) size {
	return size{c.Name, part{l.typ.GroupKind(), l.namespace}}
}

// learn replaces earlier sizes by those of a later pass.
func (s *sizes) learn(later counted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[size]int)
	}
	maps.Copy(s.counts, later)
}

// of returns the number of objects at the last listing, or 0 if there was no listing.
func (s *sizes) of(c *kube.Cluster, l listing) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[sizeOf(c, l)]
}

// empty reports whether the last listing contained no objects.
func (s *sizes) empty(c *kube.Cluster, l listing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.counts[sizeOf(c, l)]
	return known && n == 0
}
