package transfer

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// restorePauses takes scute's mark off every copy and gives the roots the pause states that were found at the source. The source is
// asked first whether it is still empty.
func (t *Transfer) restorePauses(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	if err := t.sourceEmpty(ctx, s); err != nil {
		return nil, err
	}
	return mover.PausesRestored{}, t.resumeCopies(ctx, s)
}

// resumeCopies removes the marks from the copies and restores the pauses: first of what no Cluster has for itself, ClusterClasses before the
// Clusters that use them, and then of one Cluster after the other, whose controllers work while others still have their marks. No Cluster is
// awake before the marks are off the templates and off all that belongs to it, because the topology controller copies the annotations of
// a class's templates as soon as it is awake, and others copy those of an owner. A Cluster, or a ClusterResourceSet, of which a write is
// refused keeps no other one paused.
func (t *Transfer) resumeCopies(ctx context.Context, s *mover.State) error {
	roots := rootsOf(s)
	marked := t.verified // all copies have the mark, as this process saw
	var there objects
	if t.verified = false; !marked {
		var err error
		if there, err = t.present(ctx, t.target, t.onto, s.Plan); err != nil {
			return err
		}
	}
	w := t.targetWriter(s.Plan)
	unmark := func(ctx context.Context, item mover.Item) error {
		have := there[item.Ref]
		ours := marked && !s.Adopted[item.Ref] || have != nil && t.isOurs(have)
		if _, ok := roots[item.Ref]; ok || !ours {
			return nil
		}
		return w.Annotate(ctx, item.Ref, s.Created[item.Ref], noMarks())
	}
	restore := func(ctx context.Context, items []mover.Item) error {
		var found []pause.Root
		for _, item := range items {
			if root, ok := roots[item.Ref]; ok && !s.Adopted[item.Ref] {
				root.UID = s.Created[item.Ref]
				found = append(found, root)
			}
		}
		return w.Restore(ctx, found, t.mark())
	}
	// rootOf returns the Cluster or ClusterResourceSet whose resumption resumes an item; items without one are resumed first. The kind is
	// checked before the label, because a ClusterClass may have the label of a Cluster.
	rootOf := func(item mover.Item) (ref object.Ref, found bool) {
		if ref = item.Ref; isClass(ref) || isTemplate(ref) {
			return ref, false
		}
		if _, root := roots[ref]; !root {
			ref = clusterOf(item)
		}
		_, found = roots[ref]
		return ref, found
	}
	var first, rest []mover.Item
	members := make(map[object.Ref]int) // of each root, with itself, that are not done
	for _, item := range s.Plan {
		if root, ok := rootOf(item); ok {
			rest = append(rest, item)
			members[root]++
		} else {
			first = append(first, item)
		}
	}
	if err := parallel(ctx, t.workers(), first, unmark); err != nil {
		return err
	}
	for _, level := range mover.Levels(first) {
		if err := restore(ctx, level); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var failed []error
	err := parallel(ctx, t.workers(), byCluster(rest), func(ctx context.Context, item mover.Item) error {
		err := unmark(ctx, item)
		if kube.Passing(err) {
			return err
		}
		root, _ := rootOf(item)
		mu.Lock()
		if err == nil {
			members[root]--
		}
		last := members[root] == 0
		mu.Unlock()
		if last {
			err = restore(ctx, []mover.Item{{Ref: root}})
		}
		if err != nil { // the others are resumed
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		}
		return nil
	})
	slices.SortFunc(failed, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return cmp.Or(err, cmp.Or(failed...))
}

// awaitAwake takes one look at every object that had acknowledged the pause: is it awake on the target?
func (t *Transfer) awaitAwake(ctx context.Context, s *mover.State) (mover.AwakeSeen, error) {
	var waiting []mover.Item
	for _, item := range s.Plan {
		if s.MustAwake(item) && !s.Awake[item.Ref] {
			waiting = append(waiting, item)
		}
	}
	done, pending, err := t.poll(ctx, &t.awake, waiting, t.asleep)
	return mover.AwakeSeen{New: done, Pending: pending}, err
}

// asleep says why an object does not count as awake; "" when it is, or when it is gone (nil): the target's controllers may
// do their work by now.
func (t *Transfer) asleep(ctx context.Context, w wanted, u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return "", nil
	}
	o := object.Observe(u)
	if o.Touched {
		if err := hold.Annotate(ctx, t.target, w.typ, w.ref, o.UID, map[string]any{object.TouchAnnotation: nil}); err != nil {
			return "", err
		}
	}
	switch {
	case o.Paused == object.False:
		return "", nil
	case o.Cluster != nil && o.Cluster.Paused:
		return "", nil // somebody paused it since: not ours to wait for
	case o.Paused == object.Absent:
		return "no controller of the target has looked at it yet", nil
	default:
		return "condition Paused is " + string(o.Paused) + ": " + o.PausedMessage, nil
	}
}

// clearTarget removes our copies from the target, what is owned before its owners. They were paused all along, so no
// controller has acted on them and nothing in the world is touched. Before each level both sides are asked again: no copy
// is removed unless the source holds what every copy was made from.
func (t *Transfer) clearTarget(ctx context.Context, s *mover.State, emit Emit) (mover.Outcome, error) {
	levels := mover.Levels(s.Plan)
	slices.Reverse(levels)
	for _, level := range levels {
		there, err := t.mayRemove(ctx, s)
		if err != nil {
			return nil, err
		}
		if err := t.disown(ctx, level, there); err != nil {
			return nil, err
		}
		todo := slices.DeleteFunc(level, func(item mover.Item) bool { return s.Removed[item.Ref] || s.Adopted[item.Ref] })
		err = each(ctx, t.workers(), todo, func(ctx context.Context, item mover.Item) (object.Ref, error) {
			return item.Ref, t.removeCopy(ctx, item, there[item.Ref])
		}, func(batch []object.Ref) error {
			return emit(mover.Removed{Objects: batch})
		})
		if err != nil {
			return nil, err
		}
	}
	return mover.TargetCleared{}, nil
}

// mayRemove asks both sides whether the copies may be removed, and returns what the target has. A root that is being emptied
// says that the target may have more than the plan tells.
func (t *Transfer) mayRemove(ctx context.Context, s *mover.State) (objects, error) {
	there, err := t.present(ctx, t.target, t.onto, s.Plan)
	if err != nil {
		return nil, err
	}
	source, err := t.present(ctx, t.Source, t.types, s.Plan)
	if err != nil {
		return nil, err
	}
	if err := t.originals(s, source, there); err != nil {
		return nil, err
	}
	return there, t.mayUnpause(ctx, s)
}

// removeCopy removes what has the move's mark, also a copy that no event records. An object without the mark is not the
// move's copy.
func (t *Transfer) removeCopy(ctx context.Context, item mover.Item, have *unstructured.Unstructured) error {
	if have == nil || !t.isOurs(have) {
		return nil
	}
	typ, err := t.targetType(item.Ref, item.Version)
	if err != nil {
		return err
	}
	return remove(ctx, t.target, typ, item.Ref, have.GetUID(), headOf(have))
}

// restoreSource restores the pause states found on the source and triggers the controllers that acknowledged the pause.
func (t *Transfer) restoreSource(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	if err := t.mayUnpause(ctx, s); err != nil {
		return nil, err
	}
	w := t.writer()
	if err := w.Restore(ctx, s.Roots, t.mark()); err != nil {
		return nil, err
	}
	members, _, err := t.members(ctx, s.Spec, everyKind)
	if err != nil {
		return nil, err
	}
	t.touches.By = t.ID
	return mover.RolledBack{}, w.Wake(ctx, &t.touches, subjects(members))
}
