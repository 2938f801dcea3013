package transfer

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/pause"
)

// originals reads what is copied and works on each; u is nil where one is gone. A restore reads its archive, in which every root
// that a move would pause is paused as it is at the source of a move.
func originals[R any](ctx context.Context, t *Transfer, items []mover.Item,
	work func(ctx context.Context, i int, u *unstructured.Unstructured) (R, error), hand func([]R) error,
) error {
	if t.archive == nil {
		want, err := itemsOf(t.types, t.Source, items)
		if err != nil {
			return err
		}
		return whole(ctx, t, t.Source, want, work, hand)
	}
	return each(ctx, t.workers(), indices(items), func(ctx context.Context, i int) (R, error) {
		u, err := paused(t.archive, items[i])
		if err != nil {
			var none R
			return none, err
		}
		return work(ctx, i, u)
	}, hand)
}

// loader is originals for what is created.
type loader func(ctx context.Context, items []mover.Item,
	work func(ctx context.Context, i int, u *unstructured.Unstructured) (made, error), hand func([]made) error) error

// preload reads a plan of up to inMemory objects at once: a list may have to wait in the API server, and a level would wait for it.
// More are read level by level.
func (t *Transfer) preload(ctx context.Context, items []mover.Item) (loader, error) {
	if t.archive != nil || len(items) > inMemory {
		return func(ctx context.Context, items []mover.Item,
			work func(context.Context, int, *unstructured.Unstructured) (made, error), hand func([]made) error,
		) error {
			return originals(ctx, t, items, work, hand)
		}, nil
	}
	type found struct {
		ref object.Ref
		u   *unstructured.Unstructured
	}
	read := make(objects, len(items))
	err := originals(ctx, t, items, func(_ context.Context, i int, u *unstructured.Unstructured) (found, error) {
		return found{items[i].Ref, u}, nil
	}, func(batch []found) error {
		for _, f := range batch {
			read[f.ref] = f.u
		}
		return nil
	})
	return func(ctx context.Context, items []mover.Item,
		work func(context.Context, int, *unstructured.Unstructured) (made, error), hand func([]made) error,
	) error {
		return each(ctx, t.workers(), indices(items), func(ctx context.Context, i int) (made, error) { return work(ctx, i, read[items[i].Ref]) }, hand)
	}, err
}

func indices[T any](items []T) []int {
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	return all
}

func paused(a *archive.Archive, item mover.Item) (*unstructured.Unstructured, error) {
	u, err := a.Object(item.Ref)
	switch {
	case err != nil || !pause.IsRoot(item.Ref):
	case item.Keep == "":
		pauseCopy(u)
	case !item.Held: // a Pause held it when it was backed up
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", object.PausedAnnotation)
	}
	return u, err
}
