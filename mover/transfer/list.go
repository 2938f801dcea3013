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

func isRemaining(s *mover.State, item mover.Item) bool {
	return item.KeepReason == "" && !s.Deleted[item.Ref]
}

// head contains only the fields of an object that a deletion needs, because the heads of all
// objects of a large plan are in memory while a level is deleted. The zero value means that the
// object does not exist.
type head struct {
	uid        types.UID
	deleting   bool
	finalizers bool
	released   bool // a move removed its finalizers to delete it
}

func headOf(u *unstructured.Unstructured) head {
	if u == nil {
		return head{}
	}
	return head{uid: u.GetUID(), deleting: u.GetDeletionTimestamp() != nil, finalizers: len(u.GetFinalizers()) > 0, released: isReleased(u)}
}

type heads map[object.Ref]head

func headsOf(have objects) heads {
	found := make(heads, len(have))
	for ref, u := range have {
		found[ref] = headOf(u)
	}
	return found
}

type sides struct {
	copies, originals heads
	roots             objects // of the source, with spec.paused
	// unplanned contains objects that are not in the plan, but that would be garbage collected
	// after its deletion.
	unplanned []mover.ObjectReason
}

// listBoth lists the objects of the plan in both clusters at the same time. Unless everything is
// true, it lists only the kinds of the plan at the source, and on the target only the kinds of the
// objects that remain at the source.
func (t *Transfer) listBoth(ctx context.Context, s *mover.State, everything bool) (sides, error) {
	wanted := make(map[object.Ref]bool, len(s.Plan))
	planned := make(map[string]bool)
	var remaining []mover.Item
	for _, item := range s.Plan {
		wanted[item.Ref], planned[item.Ref.GroupKind()] = true, true
		if everything || isRemaining(s, item) {
			remaining = append(remaining, item)
		}
	}
	roots := make(map[object.Ref]bool, len(s.Roots))
	for _, root := range s.Roots {
		wanted[root.Ref], roots[root.Ref] = true, true // because its pause is checked
	}
	parts := t.allListings(s)
	if !everything {
		parts = slices.DeleteFunc(parts, func(l listing) bool { return !planned[l.typ.GroupKind()] })
	}
	for i, l := range parts {
		parts[i].full = pause.IsCluster(object.Ref{Group: l.typ.Group, Kind: l.typ.Kind}) // because spec.paused is not metadata
	}
	onto, err := t.listingsOf(t.target, remaining)
	if err != nil {
		return sides{}, err
	}
	found := sides{copies: make(heads, len(remaining)), originals: make(heads, len(s.Plan)), roots: make(objects, len(s.Roots))}
	b := dependentsOf(s.Plan)
	var mu sync.Mutex
	err = t.list(ctx, append(parts, onto...), func(l listing, u *unstructured.Unstructured) error {
		mu.Lock()
		defer mu.Unlock()
		ref, have := object.RefOf(u), found.copies
		if l.side == t.Source {
			have = found.originals
			b.add(object.Observe(u))
		}
		if wanted[ref] {
			have[ref] = headOf(u)
		}
		if l.side == t.Source && roots[ref] {
			found.roots[ref] = stripContent(u)
		}
		return nil
	})
	found.unplanned = b.found
	return found, err
}

func stripContent(u *unstructured.Unstructured) *unstructured.Unstructured {
	paused, found, err := unstructured.NestedBool(u.Object, "spec", "paused")
	delete(u.Object, "status")
	delete(u.Object, "spec")
	if found && err == nil {
		u.Object["spec"] = map[string]any{"paused": paused}
	}
	u.SetManagedFields(nil)
	return u
}

// listing is a list request for a kind in a namespace, or in all namespaces.
type listing struct {
	side      *kube.Cluster
	typ       kube.Type
	namespace string
	full      bool
}

type listingKey struct{ side, kind, namespace string }

func (l listing) key() listingKey { return listingKey{l.side.Name, l.typ.GroupKind(), l.namespace} }

// list makes the list requests in parts and calls see with each object, concurrently for several
// parts. It stores the numbers of objects by kind and namespace in t.sizes.
func (t *Transfer) list(ctx context.Context, parts []listing, see func(listing, *unstructured.Unstructured) error) error {
	var mu sync.Mutex
	counts := make(map[listingKey]int)
	for _, p := range parts {
		counts[p.key()] = 0 // it may contain no objects
	}
	err := kube.ForEach(ctx, t.workers(), parts, func(ctx context.Context, p listing) error {
		list, key := p.side.ListMetadata, p.key()
		if p.full {
			list = p.side.List
		}
		return list(ctx, p.typ, p.namespace, func(u *unstructured.Unstructured) error {
			mu.Lock()
			counts[key]++
			if namespace := u.GetNamespace(); namespace != p.namespace {
				counts[listingKey{key.side, key.kind, namespace}]++
			}
			mu.Unlock()
			return see(p, u)
		})
	})
	if err == nil {
		t.sizes.update(counts)
	}
	return err
}

// listPresent returns the metadata of those planned objects that exist in cluster c, with one
// request for each kind and namespace. Steps that write call it first, to skip what an earlier
// process did.
func (t *Transfer) listPresent(ctx context.Context, c *kube.Cluster, plan []mover.Item) (objects, error) {
	parts, err := t.listingsOf(c, plan)
	if err != nil {
		return nil, err
	}
	wanted := make(map[object.Ref]bool, len(plan))
	for _, item := range plan {
		wanted[item.Ref] = true
	}
	found := make(objects, len(plan))
	return found, t.listAll(ctx, parts, func(ref object.Ref, u *unstructured.Unstructured) {
		if wanted[ref] {
			found[ref] = u
		}
	})
}

func (t *Transfer) listingsOf(c *kube.Cluster, plan []mover.Item) (parts []listing, err error) {
	listed := make(map[listingKey]bool)
	for _, item := range plan {
		typ, err := t.typeOf(c, item.Ref, item.Version)
		if err != nil {
			return nil, err
		}
		if l := (listing{side: c, typ: typ, namespace: item.Ref.Namespace}); !listed[l.key()] {
			listed[l.key()] = true
			parts = append(parts, l)
		}
	}
	return parts, nil
}

// dependents collects objects that are not in the plan, but are owned by objects that the plan
// deletes. The garbage collector would delete them too.
type dependents struct {
	moves   map[types.UID]object.Ref
	planned map[types.UID]bool
	found   []mover.ObjectReason
}

func dependentsOf(plan []mover.Item) *dependents {
	b := &dependents{moves: make(map[types.UID]object.Ref, len(plan)), planned: make(map[types.UID]bool, len(plan))}
	for _, item := range plan {
		b.planned[item.UID] = true
		if item.KeepReason == "" {
			b.moves[item.UID] = item.Ref
		}
	}
	return b
}

func (b *dependents) add(o object.Observed) {
	if owner, owned := ownerAmong(b.moves, o); owned && !b.planned[o.UID] {
		b.found = append(b.found, mover.ObjectReason{Ref: o.Ref, Reason: "it is not in the plan, but its owner " + owner.String() + " moves"})
	}
}

// unplannedDependents returns the objects at the source that are not in the plan, but are owned by
// objects that the plan deletes. It lists only kinds and namespaces that the new snapshot w does
// not contain.
func (t *Transfer) unplannedDependents(ctx context.Context, s *mover.State, w *snapshot) ([]mover.ObjectReason, error) {
	b := dependentsOf(s.Plan)
	for _, o := range w.objects {
		b.add(o)
	}
	rest := slices.DeleteFunc(t.allListings(s), func(l listing) bool { return w.isListed(l) })
	if err := t.listAll(ctx, rest, func(_ object.Ref, u *unstructured.Unstructured) { b.add(object.Observe(u)) }); err != nil {
		return nil, err
	}
	if len(b.found) == 0 {
		t.listedAt = w.at
	}
	return b.found, nil
}

// allListings returns the list requests for all kinds that a move reads, in the namespace of the
// move and the namespaces of its plan.
func (t *Transfer) allListings(s *mover.State) []listing {
	own := s.Spec.Namespace
	namespaces := map[string]bool{own: true}
	for _, item := range s.Plan {
		if item.Ref.Namespace != "" {
			namespaces[item.Ref.Namespace] = true
		}
	}
	all := slices.Collect(maps.Keys(namespaces))
	var parts []listing
	for _, typ := range t.sourceTypes {
		if typ.IsCore() {
			parts = append(parts, listing{side: t.Source, typ: typ, namespace: own})
		} else {
			parts = append(parts, listingsIn(t.Source, typ, all...)...)
		}
	}
	return parts
}

func listingsIn(side *kube.Cluster, typ kube.Type, namespaces ...string) (parts []listing) {
	if !typ.Namespaced {
		return []listing{{side: side, typ: typ}}
	}
	for _, namespace := range namespaces {
		parts = append(parts, listing{side: side, typ: typ, namespace: namespace})
	}
	return parts
}

// listAll calls see with the metadata of every object, one at a time.
func (t *Transfer) listAll(ctx context.Context, parts []listing, see func(object.Ref, *unstructured.Unstructured)) error {
	var mu sync.Mutex
	return t.list(ctx, parts, func(_ listing, u *unstructured.Unstructured) error {
		mu.Lock()
		defer mu.Unlock()
		see(object.RefOf(u), u)
		return nil
	})
}

// sizes stores the number of objects that each list request last returned. The zero value is ready
// to use.
type sizes struct {
	mu     sync.Mutex
	counts map[listingKey]int
}

func (s *sizes) update(later map[listingKey]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[listingKey]int)
	}
	maps.Copy(s.counts, later)
}

func (s *sizes) count(l listing) (n int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known = s.counts[l.key()]
	return n, known
}
