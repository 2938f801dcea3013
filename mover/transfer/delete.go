package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// Before every chunk of a level the pause is checked again, and once lookEvery has passed both clusters are asked again too:
// that lists all that they have.
const (
	deleteChunk = 250
	lookEvery   = 10 * time.Second
)

// deleteSource removes at the source what the target holds now: what is owned before its owners, nothing but the very
// objects of the plan. Before each level both sides are asked again: whatever has happened since Verified, nothing is
// deleted that the target does not hold, and nothing beside a source that works on the same machines again.
func (t *Transfer) deleteSource(ctx context.Context, s *mover.State, emit Emit) (mover.Outcome, error) {
	levels := mover.Levels(s.Plan)
	slices.Reverse(levels)
	for _, level := range levels {
		there, err := t.mayDelete(ctx, s)
		if err != nil {
			return nil, err
		}
		looked := time.Now()
		todo := slices.DeleteFunc(level, func(item mover.Item) bool { return item.Keep != "" || s.Deleted[item.Ref] })
		for chunk := range slices.Chunk(todo, deleteChunk) {
			if time.Since(looked) > lookEvery {
				if there, err = t.mayDelete(ctx, s); err != nil {
					return nil, err
				}
				looked = time.Now()
			}
			if err := t.keepPaused(ctx, rootsAbove(s.Roots, chunk), true); err != nil {
				return nil, err
			}
			if err := t.deleteSome(ctx, chunk, there, emit); err != nil {
				return nil, err
			}
		}
	}
	return mover.DeleteDone{}, t.sourceEmpty(ctx, s)
}

func (t *Transfer) deleteSome(ctx context.Context, chunk []mover.Item, there objects, emit Emit) error {
	return each(ctx, t.workers(), chunk, func(ctx context.Context, item mover.Item) (object.Ref, error) {
		typ, err := t.sourceType(item.Ref, item.Version)
		if err != nil {
			return item.Ref, err
		}
		return item.Ref, remove(ctx, t.Source, typ, item.Ref, item.UID, there[item.Ref])
	}, func(batch []object.Ref) error {
		return emit(mover.DeletedSome{Objects: batch})
	})
}

// rootsAbove are the roots whose pause holds the items: their own Clusters, and every ClusterClass.
func rootsAbove(roots []pause.Root, items []mover.Item) []pause.Root {
	clusters := make(map[string]bool)
	for _, item := range items {
		clusters[item.Cluster] = true
	}
	return slices.DeleteFunc(slices.Clone(roots), func(r pause.Root) bool { return pause.IsCluster(r.Ref) && !clusters[r.Ref.Name] })
}

// mayDelete asks both sides whether the next deletion is safe, and returns what the source has. A pause that somebody lifted is
// set again first: while its controllers are at work they make again whatever a human takes away to solve what is found.
func (t *Transfer) mayDelete(ctx context.Context, s *mover.State) (objects, error) {
	if err := t.copies(ctx, s); err != nil {
		return nil, err
	}
	if err := t.keepPaused(ctx, s.Roots, false); err != nil {
		return nil, err
	}
	there, unplanned, err := t.dependants(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := t.classesUnused(ctx, s, there); err != nil {
		return nil, err
	}
	if err := t.recreated(ctx, s.Plan, there); err != nil {
		return nil, err
	}
	err = strand(unplanned, "nothing more is deleted at the source, because the source would lose what came after the plan was made",
		"copy it to the target if it is needed there; then delete it at the source and take its finalizers off, because nothing there acts on them, "+
			"or remove the owner reference to keep it: the move continues by itself")
	if err != nil {
		return nil, err
	}
	unmarked := slices.DeleteFunc(slices.Clone(s.Roots), func(r pause.Root) bool { return there[r.Ref] == nil || isEmptying(there[r.Ref]) })
	if err := t.keepPaused(ctx, unmarked, true); err != nil {
		return nil, err
	}
	return there, t.atRest(ctx, s)
}

// atRest waits, after somebody lifted the pause of the source, until its controllers have taken note of the pause again. One
// that is still at work replaces a Machine that is deleted under its hands.
func (t *Transfer) atRest(ctx context.Context, s *mover.State) error {
	if !t.lifted.Load() {
		return nil
	}
	members, _, err := t.members(ctx, s.Spec, false)
	if err != nil {
		return err
	}
	for _, m := range members.Objects {
		how, acked := s.Acks[m.Ref]
		if why := pause.Broken(how, m.Observed); acked && m.Keep == "" && why != "" {
			return liftedPause(m.Ref, why)
		}
	}
	t.lifted.Store(false)
	return nil
}

func liftedPause(ref object.Ref, why string) error {
	return &waitError{
		what: "somebody lifted the pause of the source, and it was set again; nothing is deleted before the source is at rest: " + ref.String() + ": " + why,
		next: "find out what lifts it (a GitOps tool?), and stop that for the time of the move",
	}
}

// sourceEmpty lists the source again: none of its controllers may work on what the target is about to resume.
func (t *Transfer) sourceEmpty(ctx context.Context, s *mover.State) error {
	there, err := t.present(ctx, t.Source, t.types, s.Plan)
	if err != nil {
		return err
	}
	return t.recreated(ctx, s.Plan, there)
}

// keepPaused makes sure that the remaining objects of the source are still paused: if their controllers reconciled, a
// deletion would reach the infrastructure. With mark it also records on the roots that they are being emptied, for a
// rollback by an older log. It does so before the first deletion, and not before it is known to be safe, because a
// marked source does not resume.
func (t *Transfer) keepPaused(ctx context.Context, roots []pause.Root, mark bool) error {
	return t.eachRoot(ctx, roots, func(ctx context.Context, root pause.Root, typ kube.Type, u *unstructured.Unstructured) error {
		if u == nil || u.GetUID() != root.UID {
			return nil
		}
		if !pause.RootOf(object.Observe(u)).Found {
			if err := hold.Set(ctx, t.Source, typ, root, t.mark()); err != nil {
				return err
			}
			t.lifted.Store(true)
			return liftedPause(root.Ref, "it was not paused")
		}
		if !mark || isEmptying(u) {
			return nil
		}
		return hold.Annotate(ctx, t.Source, typ, root.Ref, root.UID, map[string]any{object.EmptyingAnnotation: t.ID})
	})
}

func isEmptying(u *unstructured.Unstructured) bool {
	_, marked := u.GetAnnotations()[object.EmptyingAnnotation]
	return marked
}

// remove deletes an object without its controllers: it is paused, so no controller handles its finalizers. Where it has
// finalizers, one patch removes them and sets the mark with which webhooks allow the deletion; then the object is deleted.
// Both requests name the UID. An object with another UID is not removed, because the planned one is gone. One without
// finalizers is deleted at once, and gets the mark only where the deletion is denied without it. have is the object as just
// observed; nil if there is none.
func remove(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, have *unstructured.Unstructured) error {
	const tries = 4 // two are needed when a finalizer comes back between the patch and the deletion, one more after a denial
	denied := false
	for range tries {
		if have == nil || have.GetUID() != uid {
			return nil
		}
		if denied || len(have.GetFinalizers()) > 0 {
			if err := release(ctx, c, typ, ref, have); err != nil && !gone(err) && !apierrors.IsConflict(err) {
				return err
			}
		}
		removed, err := c.Delete(ctx, typ, ref.Namespace, ref.Name, uid)
		switch {
		case removed, gone(err):
			return nil
		case err == nil, apierrors.IsConflict(err):
		case !denied && !released(have) && denial(err) != "" && !kube.Unpermitted(err):
			denied = true
		default:
			return err
		}
		if have, err = c.Get(ctx, typ, ref.Namespace, ref.Name); gone(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: delete %s: a controller keeps putting its finalizers back", c.Name, ref)
}

// release marks an object as moved and removes its finalizers. It is deleted right after it is marked: some controllers
// add their finalizer again on a paused object (cluster-api issue 11812), but the API server rejects new finalizers on
// one that is being deleted.
func release(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, have *unstructured.Unstructured) error {
	if released(have) && (have.GetDeletionTimestamp() == nil || len(have.GetFinalizers()) == 0) {
		return nil
	}
	return patchRelease(ctx, c, typ, ref, have.GetUID())
}

// patchRelease takes the finalizers off and says that it is for a move, in one write.
func patchRelease(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, dryRun ...string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "finalizers": nil, "annotations": map[string]any{object.DeleteForMoveAnnotation: ""},
	}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, "release "+ref.String(), typ, ref.Namespace, ref.Name, patch, dryRun...)
}

func gone(err error) bool { return apierrors.IsNotFound(err) }
