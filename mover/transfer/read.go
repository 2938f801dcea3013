package transfer

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/pause"
)

const (
	// Objects of a kind in a namespace are read one by one if they are at most maxSingleReads, or
	// fewer than one in sparseRatio of the objects there. Otherwise they are listed.
	maxSingleReads = 5
	sparseRatio    = 8
	// maxInMemory limits the number of complete objects of one cluster in memory, for each move. It
	// is also the page size of a list.
	maxInMemory = 500
	// unknownWeight is the minimum of group.page for a kind that was not listed before, because its
	// pages may contain many objects that are not wanted.
	unknownWeight   = maxInMemory / 10
	clusterSelector = clusterv1.ClusterNameLabel
)

type wanted struct {
	typ kube.Type
	ref object.Ref
}

// readEach reads complete objects of one cluster, and calls work for each object while others are
// still being read; u is nil if the object does not exist. If many objects of a kind are wanted, it
// lists them, because a page costs the API server less than single reads. Parallel lists hold at
// most maxInMemory objects. If the pages are too large or expire, readEach reads the remaining
// objects one by one.
func readEach[R any](ctx context.Context, t *Transfer, c *kube.Cluster, want []wanted,
	work func(ctx context.Context, i int, u *unstructured.Unstructured) (R, error), hand func([]R) error,
) error {
	type found struct {
		i int
		u *unstructured.Unstructured // nil if it must be read with a separate request
	}
	memory := semaphore.NewWeighted(maxInMemory)
	read := func(ctx context.Context, group *group, put func(found)) error {
		at := make(map[object.Ref]int, len(group.members))
		for _, i := range group.members {
			at[want[i].ref] = i
		}
		if group.list {
			if err := memory.Acquire(ctx, group.page); err != nil {
				return err
			}
			err := c.ListLabelled(ctx, group.typ, group.namespace, group.selector, func(u *unstructured.Unstructured) error {
				ref := object.Ref{Group: group.typ.Group, Kind: group.typ.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
				if i, ok := at[ref]; ok {
					delete(at, ref)
					put(found{i, u})
				}
				return ctx.Err()
			})
			memory.Release(group.page)
			if err != nil && !apierrors.IsResourceExpired(err) && !errors.Is(err, guard.ErrTooLarge) {
				return err
			}
		}
		for _, i := range group.members { // objects that no list has returned
			if _, left := at[want[i].ref]; left && ctx.Err() == nil {
				put(found{i: i})
			}
		}
		return ctx.Err()
	}
	return stream(ctx, t.workers(), func(ctx context.Context, put func(found)) error {
		lists, ctx := errgroup.WithContext(ctx)
		lists.SetLimit(t.workers()) // lists mostly wait for the API server's cache
		for _, group := range t.groupWanted(c, want) {
			lists.Go(func() error { return read(ctx, group, put) })
		}
		return lists.Wait()
	}, func(ctx context.Context, f found) (none R, err error) {
		if f.u == nil {
			if f.u, err = c.Find(ctx, want[f.i].typ, want[f.i].ref); err != nil {
				return none, err
			}
		}
		return work(ctx, f.i, f.u)
	}, hand)
}

type group struct {
	listing

	members  []int
	list     bool
	page     int64 // the estimated maximum of objects in a page
	selector string
}

func (t *Transfer) groupWanted(c *kube.Cluster, want []wanted) []*group {
	type key struct{ kind, version, namespace string }
	known := make(map[key]*group)
	var groups []*group
	for i, w := range want {
		k := key{w.typ.GroupKind(), w.typ.Versions[0], w.ref.Namespace}
		if known[k] == nil {
			known[k] = &group{listing: listing{side: c, typ: w.typ, namespace: w.ref.Namespace}}
			groups = append(groups, known[k])
		}
		known[k].members = append(known[k].members, i)
	}
	for _, g := range groups {
		n := len(g.members)
		there, _ := t.sizes.count(g.listing)
		g.list = n > maxSingleReads && n*sparseRatio >= there
		g.page = int64(min(max(n, there), maxInMemory))
		if there == 0 {
			g.page = max(g.page, unknownWeight)
		}
		if g.typ.IsCore() {
			g.selector = clusterSelector // skip Secrets and ConfigMaps of no Cluster
		}
	}
	return groups
}

func discard([]struct{}) error { return nil }

func (t *Transfer) wantedOf(c *kube.Cluster, plan []mover.Item) ([]wanted, error) {
	want := make([]wanted, 0, len(plan))
	for _, item := range plan {
		typ, err := t.typeOf(c, item.Ref, item.Version)
		if err != nil {
			return nil, err
		}
		want = append(want, wanted{typ, item.Ref})
	}
	return want, nil
}

// eachRoot calls work for each root of the source; u is nil if the root was deleted or replaced. It
// uses the objects in have, or reads the roots if have is nil.
func (t *Transfer) eachRoot(ctx context.Context, roots []pause.Root, have objects,
	work func(context.Context, pause.Root, kube.Type, *unstructured.Unstructured) error,
) error {
	want := make([]wanted, 0, len(roots))
	for _, root := range roots {
		typ, err := t.kind(root.Ref)
		if err != nil {
			return err
		}
		want = append(want, wanted{typ, root.Ref})
	}
	workOn := func(ctx context.Context, i int, u *unstructured.Unstructured) (none struct{}, err error) {
		if u != nil && u.GetUID() != roots[i].UID {
			u = nil
		}
		return none, work(ctx, roots[i], want[i].typ, u)
	}
	if have == nil {
		return readEach(ctx, t, t.Source, want, workOn, discard)
	}
	return kube.ForEach(ctx, t.workers(), indices(roots), func(ctx context.Context, i int) error {
		_, err := workOn(ctx, i, have[roots[i].Ref])
		return err
	})
}

// eachOriginal calls work for each original to copy; u is nil if it was deleted. In a restore, it
// reads the originals from the archive, and sets the pause of each root that a move would have
// paused.
func eachOriginal[R any](ctx context.Context, t *Transfer, items []mover.Item,
	work func(ctx context.Context, i int, u *unstructured.Unstructured) (R, error), hand func([]R) error,
) error {
	if t.archive == nil {
		want, err := t.wantedOf(t.Source, items)
		if err != nil {
			return err
		}
		return readEach(ctx, t, t.Source, want, work, hand)
	}
	return each(ctx, t.workers(), indices(items), func(ctx context.Context, i int) (none R, err error) {
		u, err := readPaused(t.archive, items[i])
		if err != nil {
			return none, err
		}
		return work(ctx, i, u)
	}, hand)
}

// readOriginals returns the originals of items; those that were deleted are nil.
func (t *Transfer) readOriginals(ctx context.Context, items []mover.Item) (objects, error) {
	sources := make([]*unstructured.Unstructured, len(items))
	err := eachOriginal(ctx, t, items, func(_ context.Context, i int, u *unstructured.Unstructured) (none struct{}, _ error) {
		sources[i] = u
		return none, nil
	}, discard)
	read := make(objects, len(items))
	for i, item := range items {
		read[item.Ref] = sources[i]
	}
	return read, err
}

func indices[T any](items []T) []int {
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	return all
}

func readPaused(a *archive.Archive, item mover.Item) (*unstructured.Unstructured, error) {
	u, err := a.Object(item.Ref)
	switch {
	case err != nil || !pause.IsRoot(item.Ref):
	case item.KeepReason == "":
		pauseCopy(u)
	case !item.PausedByUser: // a Pause had paused it during the backup
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", object.PausedAnnotation)
	}
	return u, err
}

func pauseCopy(u *unstructured.Unstructured) {
	ref := object.RefOf(u)
	switch {
	case pause.IsCluster(ref):
		_ = unstructured.SetNestedField(u.Object, true, "spec", "paused")
	case pause.IsRoot(ref):
		_ = unstructured.SetNestedField(u.Object, "", "metadata", "annotations", object.PausedAnnotation)
	}
}
