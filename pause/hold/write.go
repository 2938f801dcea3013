package hold

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Writer writes to many objects of a cluster concurrently.
type Writer struct {
	Cluster *kube.Cluster
	Kind    func(object.Ref) (kube.Type, error)
	// Workers limits the concurrent calls; it is at least 1.
	Workers int
	// TouchValue is the value of the annotation that wakes a controller.
	TouchValue string
}

// Set pauses roots and adds the holder's annotations. It is idempotent. It writes the first root
// before the others: of two concurrent moves of the same clusters, only one then gets the first
// root and thus the others. Otherwise each could get one root, and both would fail.
func (w Writer) Set(ctx context.Context, roots []pause.Root, mark Holder) error {
	set := func(ctx context.Context, root pause.Root) error {
		typ, err := w.Kind(root.Ref)
		if err != nil {
			return err
		}
		return SwitchOf(root.Ref).Set(ctx, w.Cluster, typ, root, mark)
	}
	first := min(1, len(roots))
	if err := kube.ForEach(ctx, w.Workers, roots[:first], set); err != nil {
		return err
	}
	return kube.ForEach(ctx, w.Workers, roots[first:], set)
}

// Restore restores the earlier pause states. It skips a root without the holder's annotation. After
// a failure it restores the other roots, and returns the first root's error.
func (w Writer) Restore(ctx context.Context, roots []pause.Root, mark Holder) error {
	failed := make([]error, len(roots))
	indices := make([]int, len(roots))
	for i := range indices {
		indices[i] = i
	}
	err := kube.ForEach(ctx, w.Workers, indices, func(ctx context.Context, i int) error {
		typ, err := w.Kind(roots[i].Ref)
		if err == nil {
			err = SwitchOf(roots[i].Ref).Restore(ctx, w.Cluster, typ, roots[i], mark)
		}
		failed[i] = err
		return nil
	})
	return cmp.Or(err, cmp.Or(failed...))
}

// Wake wakes the controllers of Machines, which do not watch their Cluster's pause and would react
// only after a minute or more. It also removes leftover touch annotations.
func (w Writer) Wake(ctx context.Context, t *Touches, subjects []pause.Subject) error {
	var asleep, touched []object.Ref
	for _, o := range subjects {
		switch {
		case o.Touched:
			touched = append(touched, o.Ref)
		case o.Machine != nil && o.Paused == object.True && !o.PausedByUser:
			asleep = append(asleep, o.Ref)
		}
	}
	t.Touch(ctx, w, asleep)
	return kube.ForEach(ctx, w.Workers, touched, func(ctx context.Context, ref object.Ref) error {
		return w.Annotate(ctx, ref, "", map[string]any{object.TouchAnnotation: nil})
	})
}

// Annotate sets annotations, or removes those whose value is nil. It ignores an object that does not exist.
func (w Writer) Annotate(ctx context.Context, ref object.Ref, uid types.UID, annotations map[string]any) error {
	typ, err := w.Kind(ref)
	if err != nil {
		return err
	}
	return Annotate(ctx, w.Cluster, typ, ref, uid, annotations)
}

// Annotate works like Writer.Annotate, for an object of a known type.
func Annotate(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, annotations map[string]any) error {
	meta := map[string]any{"annotations": annotations}
	if uid != "" {
		meta["uid"] = uid
	}
	return client.IgnoreNotFound(c.Patch(ctx, "annotate "+ref.String(), typ, ref, map[string]any{"metadata": meta}))
}

const touchInterval = 15 * time.Second

// Touches wakes the controllers of silent objects by setting and removing an annotation. It is not
// safe for concurrent use.
type Touches struct{ last map[object.Ref]time.Time }

// Touch wakes the controllers of objects. It ignores errors, because it only saves time.
func (t *Touches) Touch(ctx context.Context, w Writer, refs []object.Ref) {
	if t.last == nil {
		t.last = make(map[object.Ref]time.Time)
	}
	now := time.Now()
	var due []object.Ref
	for _, ref := range refs {
		if now.Sub(t.last[ref]) >= touchInterval {
			t.last[ref] = now
			due = append(due, ref)
		}
	}
	_ = kube.ForEach(ctx, w.Workers, due, func(ctx context.Context, ref object.Ref) error {
		if err := w.Annotate(ctx, ref, "", map[string]any{object.TouchAnnotation: w.TouchValue}); err != nil {
			return err
		}
		return w.Annotate(ctx, ref, "", map[string]any{object.TouchAnnotation: nil})
	})
}
