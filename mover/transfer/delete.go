package transfer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/view"
)

// The pause is checked before each chunk of a level, unless a listing that began less than
// maxListingAge ago contained the paused roots. After listInterval, both clusters are listed in
// full again. The interval is at least listShare times as long as the last full listing took, so a
// large move spends at most a sixth of its time on listings.
const (
	deleteChunk  = 250
	listInterval = 10 * time.Second
	listShare    = 5
	pauseShare   = 10
)

func (t *Transfer) listIntervalAfter(took time.Duration) time.Duration {
	return max(cmp.Or(t.listInterval, listInterval), listShare*took)
}

// maxListingAge returns how long a listing counts as current: 1 second by default.
func (t *Transfer) maxListingAge() time.Duration { return t.listIntervalAfter(0) / pauseShare }

// deleteSource deletes the planned objects at the source by UID, dependants before owners. Before
// each level it checks both clusters, so that an object is deleted only if the target still has its
// copy, and only while the source's controllers are paused. Before roots are deleted, and every
// listInterval, it also lists the kinds outside of the plan.
func (t *Transfer) deleteSource(ctx context.Context, s *mover.State, emit Emit) (mover.Outcome, error) {
	spared := false
	for _, level := range slices.Backward(mover.Levels(s.Plan)) {
		todo := byCluster(slices.DeleteFunc(level, func(item mover.Item) bool { return !isRemaining(s, item) }))
		began := time.Now()
		there, err := t.checkDeletion(ctx, s, slices.ContainsFunc(todo, func(item mover.Item) bool { return pause.IsRoot(item.Ref) }))
		if err != nil {
			return nil, err
		}
		if !spared {
			if err := t.detachRemaining(ctx, s.Plan); err != nil {
				return nil, err
			}
			spared = true
		}
		looked, paused := time.Now(), began // paused is when the pause was last observed; zero after a deletion
		next := t.listIntervalAfter(looked.Sub(began))
		for chunk := range slices.Chunk(todo, deleteChunk) {
			if began = time.Now(); began.Sub(looked) > next {
				if there, err = t.checkDeletion(ctx, s, true); err != nil {
					return nil, err
				}
				looked, paused = time.Now(), began
				next = t.listIntervalAfter(looked.Sub(began))
			}
			if time.Since(paused) > t.maxListingAge() {
				if err := t.ensurePaused(ctx, rootsAbove(s.Roots, chunk), nil, t.annotateEmptying); err != nil {
					return nil, err
				}
			}
			paused = time.Time{}
			if err := t.deleteSome(ctx, chunk, there, emit); err != nil {
				return nil, err
			}
		}
	}
	return mover.SourceEmptied{}, t.checkSourceEmpty(ctx, s)
}

func (t *Transfer) deleteSome(ctx context.Context, chunk []mover.Item, there heads, emit Emit) error {
	return each(ctx, t.workers(), chunk, func(ctx context.Context, item mover.Item) (object.Ref, error) {
		typ, err := t.typeOf(t.Source, item.Ref, item.Version)
		if err != nil {
			return item.Ref, err
		}
		return item.Ref, remove(ctx, t.Source, typ, item.Ref, item.UID, there[item.Ref])
	}, func(batch []object.Ref) error {
		return emit(mover.Deleted{Objects: batch})
	})
}

// byCluster sorts the items by Cluster, so that a chunk contains objects of few Clusters, whose
// pause must be checked.
func byCluster(items []mover.Item) []mover.Item {
	slices.SortStableFunc(items, func(a, b mover.Item) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return items
}

// rootsAbove returns the roots whose pause applies to the items: their Clusters and every
// ClusterClass.
func rootsAbove(roots []pause.Root, items []mover.Item) []pause.Root {
	clusters := make(map[string]bool)
	for _, item := range items {
		clusters[item.Cluster] = true
	}
	return slices.DeleteFunc(slices.Clone(roots), func(r pause.Root) bool { return pause.IsCluster(r.Ref) && !clusters[r.Ref.Name] })
}

// checkDeletion returns an error unless the next deletion is safe according to both clusters, and
// otherwise the objects of the source. It lists only the kinds of the plan, unless everything is
// true or listInterval has passed. It pauses roots whose pause was removed before it makes the
// later checks. Otherwise controllers would recreate the objects that a user deletes to resolve a
// problem that these checks find.
func (t *Transfer) checkDeletion(ctx context.Context, s *mover.State, everything bool) (heads, error) {
	now, looked := time.Now(), t.listedAt
	if everything = everything || now.Sub(looked) > t.listIntervalAfter(0); everything {
		looked = now
	}
	t.listedAt = time.Time{} // if a check fails, the next call lists everything
	look, err := t.listBoth(ctx, s, everything)
	if err != nil {
		return nil, err
	}
	if err := checkCopies(s, look.copies, everything); err != nil {
		return nil, err
	}
	if err := t.ensurePaused(ctx, s.Roots, look.roots, nil); err != nil {
		return nil, err
	}
	if err := t.checkClassesUnused(ctx, s, look.originals); err != nil {
		return nil, err
	}
	if err := t.checkRecreated(ctx, s.Plan, look.originals); err != nil {
		return nil, err
	}
	err = strandedError(look.unplanned,
		"deletion at the source has stopped, because objects that were created after the plan was recorded would be lost",
		"copy them to the target if they are needed there; then delete them at the source and remove their finalizers, because no "+
			"controller there acts on them; or remove the owner reference to keep them. The move continues by itself")
	if err != nil {
		return nil, err
	}
	if err := t.eachRoot(ctx, s.Roots, look.roots, t.annotateEmptying); err != nil {
		return nil, err
	}
	if err := t.checkAcknowledged(ctx, s); err != nil {
		return nil, err
	}
	t.listedAt = looked
	return look.originals, nil
}

// checkAcknowledged returns an error if the pause at the source was removed and restored, until the
// source's controllers have acknowledged it again. An active controller would replace a Machine
// that is being deleted.
func (t *Transfer) checkAcknowledged(ctx context.Context, s *mover.State) error {
	if !t.pauseLifted.Load() {
		return nil
	}
	members, _, err := t.members(ctx, s.Spec, everyKind)
	if err != nil {
		return err
	}
	for _, m := range members.Objects {
		how, acked := s.Acks[m.Ref]
		if why := pause.InvalidReason(how, m.Observed); acked && m.KeepReason == "" && why != "" {
			return pauseRemovedError(m.Ref, why)
		}
	}
	t.pauseLifted.Store(false)
	return nil
}

// checkSourceEmpty returns an error if the source has objects again on which its controllers could
// act after the target resumes.
func (t *Transfer) checkSourceEmpty(ctx context.Context, s *mover.State) error {
	moves := slices.DeleteFunc(slices.Clone(s.Plan), func(item mover.Item) bool { return item.KeepReason != "" || !isActive(item) })
	there, err := t.listPresent(ctx, t.Source, moves)
	if err != nil {
		return err
	}
	return t.checkRecreated(ctx, moves, headsOf(there))
}

// ensurePaused returns an error unless all roots of the source are still paused. If their
// controllers reconciled, a deletion at the source would delete infrastructure. It pauses all
// unpaused roots again before it returns, because a tool that removes one pause removes all of
// them. It calls work, which may be nil, for each paused root. have contains the roots, or is nil
// if they must be read.
func (t *Transfer) ensurePaused(
	ctx context.Context, roots []pause.Root, have objects, work func(context.Context, pause.Root, kube.Type, *unstructured.Unstructured) error,
) error {
	var mu sync.Mutex
	var failed error
	var unpaused []object.Ref
	err := t.eachRoot(ctx, roots, have, func(ctx context.Context, root pause.Root, typ kube.Type, u *unstructured.Unstructured) error {
		if u == nil || pause.RootOf(object.Observe(u)).Found {
			if work == nil {
				return nil
			}
			return work(ctx, root, typ, u)
		}
		err := hold.SwitchOf(root.Ref).Set(ctx, t.Source, typ, root, t.holder())
		if err == nil {
			t.pauseLifted.Store(true)
		}
		mu.Lock()
		defer mu.Unlock()
		failed, unpaused = cmp.Or(failed, err), append(unpaused, root.Ref)
		return nil
	})
	if failed == nil && len(unpaused) > 0 {
		slices.SortFunc(unpaused, object.Compare)
		failed = pauseRemovedError(unpaused[0], view.Count(len(unpaused), "object was", "objects were")+" not paused")
	}
	return cmp.Or(failed, err)
}

// annotateEmptying sets an annotation on a root, which records that deletion of its objects has
// begun. A rollback that uses an older log reads it, and does not resume such a source. Call
// annotateEmptying right before the first deletion, after all checks.
func (t *Transfer) annotateEmptying(ctx context.Context, root pause.Root, typ kube.Type, u *unstructured.Unstructured) error {
	if u == nil || isEmptying(u) {
		return nil
	}
	return hold.Annotate(ctx, t.Source, typ, root.Ref, root.UID, map[string]any{object.EmptyingAnnotation: t.ID})
}

func isEmptying(u *unstructured.Unstructured) bool {
	_, marked := u.GetAnnotations()[object.EmptyingAnnotation]
	return marked
}

// remove deletes an object whose controllers are paused and do not process its finalizers. If the
// object has finalizers, one patch removes them and sets the annotation that makes webhooks allow
// the deletion. An object without finalizers gets the annotation only if its deletion is denied.
// Both requests contain the UID, so an object with another UID is not changed.
func remove(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, have head) error {
	const tries = 4 // two in case a finalizer is added between patch and deletion, one more after a denial
	denied := false
	for range tries {
		if have.uid != uid {
			return nil
		}
		if (denied || have.finalizers) && (!have.released || have.deleting && have.finalizers) {
			if err := release(ctx, c, typ, ref, uid); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return err
			}
		}
		removed, err := c.Delete(ctx, typ, ref.Namespace, ref.Name, uid)
		switch {
		case removed, apierrors.IsNotFound(err):
			return nil
		case err == nil, apierrors.IsConflict(err):
		case !denied && !have.released && denial(err) != "" && !kube.IsAuthorizationDenied(err):
			denied = true
		default:
			return err
		}
		now, err := c.Find(ctx, typ, ref)
		if now == nil {
			return err
		}
		have = headOf(now)
	}
	return fmt.Errorf("%s: delete %s: a controller keeps adding its finalizers again", c.Name, ref)
}

// release removes the finalizers of an object and annotates it as deleted for a move. It also sets
// the paused annotation of the object, because some controllers, such as those of the add-on
// provider for Helm, ignore the pause of the Cluster, and would act on the deletion. Delete the
// object right after release, because some controllers add their finalizer to a paused object again
// (cluster-api issue 11812), which the API server rejects only for an object that is being deleted.
func release(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, dryRun ...string) error {
	return c.Patch(ctx, "release "+ref.String(), typ, ref, map[string]any{"metadata": map[string]any{
		"uid": uid, "finalizers": nil, "annotations": map[string]any{object.DeleteForMoveAnnotation: "", object.PausedAnnotation: ""},
	}}, dryRun...)
}

func pauseRemovedError(ref object.Ref, why string) error {
	return &waitError{
		message: "another client removed the pause at the source, and scute set it again; nothing is deleted until every object has acknowledged it: " +
			ref.String() + ": " + why,
		next: "find out what removes the pause (a GitOps tool?), and suspend it during the move",
	}
}
