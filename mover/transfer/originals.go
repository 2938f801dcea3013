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
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	return each(ctx, t.workers(), all, func(ctx context.Context, i int) (R, error) {
		u, err := paused(t.archive, items[i])
		if err != nil {
			var none R
			return none, err
		}
		return work(ctx, i, u)
	}, hand)
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
