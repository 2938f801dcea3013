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

// restorePauses resumes the copies, after it has checked that the source is still empty.
func (t *Transfer) restorePauses(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	if err := t.checkSourceEmpty(ctx, s); err != nil {
		return nil, err
	}
	return mover.PausesRestored{}, t.resumeCopies(ctx, s)
}

// resumeCopies removes the move's annotations from the copies and restores the recorded pause
// states. It begins with objects that belong to no Cluster, including ClusterClasses. Then it
// resumes one Cluster after the other. If a write to one Cluster is rejected, it still resumes the
// others.
//
// A Cluster is resumed only after the annotations of templates and of all its objects are removed:
// its topology controller immediately copies the annotations of the class's templates, and other
// controllers copy those of an owner.
func (t *Transfer) resumeCopies(ctx context.Context, s *mover.State) error {
	roots := rootsOf(s)
	marked := t.verified // this process has read all copies with the annotations
	var there objects
	if t.verified = false; !marked {
		var err error
		if there, err = t.listPresent(ctx, t.target, s.Plan); err != nil {
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
		return w.Annotate(ctx, item.Ref, s.Created[item.Ref], clearedAnnotations())
	}
	restore := func(ctx context.Context, items []mover.Item) error {
		var found []pause.Root
		for _, item := range items {
			if root, ok := roots[item.Ref]; ok && !s.Adopted[item.Ref] {
				root.UID = s.Created[item.Ref]
				found = append(found, root)
			}
		}
		return w.Restore(ctx, found, t.holder())
	}
	// rootOf returns the Cluster or ClusterResourceSet that an item is resumed with. Check the kind
	// before the label, because a ClusterClass may have the label of a Cluster.
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
	members := make(map[object.Ref]int) // unfinished items of each root, including the root
	for _, item := range s.Plan {
		if root, ok := rootOf(item); ok {
			rest = append(rest, item)
			members[root]++
		} else {
			first = append(first, item)
		}
	}
	if err := kube.ForEach(ctx, t.workers(), first, unmark); err != nil {
		return err
	}
	for _, level := range mover.Levels(first) {
		if err := restore(ctx, level); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var failed []error
	err := kube.ForEach(ctx, t.workers(), byCluster(rest), func(ctx context.Context, item mover.Item) error {
		err := unmark(ctx, item)
		if kube.IsTransient(err) {
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
		if err != nil { // the other roots are still resumed
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		}
		return nil
	})
	slices.SortFunc(failed, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return cmp.Or(err, cmp.Or(failed...))
}

func (t *Transfer) pollResume(ctx context.Context, s *mover.State) (mover.ResumeRead, error) {
	waiting := slices.DeleteFunc(slices.Clone(s.Plan), func(item mover.Item) bool { return !s.MustResume(item) || s.Resumed[item.Ref] })
	done, pending, err := t.poll(ctx, &t.resumePolls, waiting, t.stillPausedReason)
	return mover.ResumeRead{New: done, Pending: pending}, err
}

// stillPausedReason returns why a copy has not resumed, or "" if it has. A copy that was deleted
// (nil) counts as resumed, because the target's controllers may already be active.
func (t *Transfer) stillPausedReason(ctx context.Context, w wanted, u *unstructured.Unstructured) (string, error) {
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
		return "", nil // another client paused it since, so the move does not wait
	case o.Paused == object.Absent:
		return "no controller of the target has reported its condition Paused yet", nil
	default:
		return "condition Paused is " + string(o.Paused) + ": " + o.PausedMessage, nil
	}
}

// clearTarget deletes the copies in a rollback, dependants before owners. The copies were never
// resumed, so no infrastructure is affected. Before each level it checks that the source still has
// all originals.
func (t *Transfer) clearTarget(ctx context.Context, s *mover.State, emit Emit) (mover.Outcome, error) {
	for _, level := range slices.Backward(mover.Levels(s.Plan)) {
		there, err := t.checkCopyRemoval(ctx, s)
		if err != nil {
			return nil, err
		}
		if err := t.removeCopyOwners(ctx, level, there); err != nil {
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

// checkCopyRemoval returns an error unless the copies may be deleted according to both clusters,
// and otherwise the objects of the target. They may not be deleted if deletion at the source has
// begun.
func (t *Transfer) checkCopyRemoval(ctx context.Context, s *mover.State) (objects, error) {
	there, err := t.listPresent(ctx, t.target, s.Plan)
	if err != nil {
		return nil, err
	}
	source, err := t.listPresent(ctx, t.Source, s.Plan)
	if err != nil {
		return nil, err
	}
	if err := t.checkOriginals(s, source, there); err != nil {
		return nil, err
	}
	return there, t.checkUnpause(ctx, s)
}

// removeCopy deletes an object of the target if it has the move's annotations, whether or not an
// event records its creation. It keeps all other objects.
func (t *Transfer) removeCopy(ctx context.Context, item mover.Item, have *unstructured.Unstructured) error {
	if have == nil || !t.isOurs(have) {
		return nil
	}
	typ, err := t.typeOf(t.target, item.Ref, item.Version)
	if err != nil {
		return err
	}
	return remove(ctx, t.target, typ, item.Ref, have.GetUID(), headOf(have))
}

func (t *Transfer) restoreSource(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	if err := t.checkUnpause(ctx, s); err != nil {
		return nil, err
	}
	w := t.writer()
	if err := w.Restore(ctx, s.Roots, t.holder()); err != nil {
		return nil, err
	}
	members, _, err := t.members(ctx, s.Spec, everyKind)
	if err != nil {
		return nil, err
	}
	return mover.RolledBack{}, w.Wake(ctx, &t.touches, subjects(members))
}
