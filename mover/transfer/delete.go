package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
)

// Before every chunk of a level the pause is checked again, and once lookEvery has passed both clusters are asked again too, for
// all that they have. A large move spends no more than a sixth of its time on that: the next look comes lookShare times as long
// after one as it took. The pause is checked again before the first chunk too, unless the look began
// less than momentAfter before: the look of a large move takes long.
const (
	deleteChunk = 250
	lookEvery   = 10 * time.Second
	lookShare   = 5
	pauseShare  = 10
)

// lookAfter is how long after a look both clusters are asked again within a level.
func (t *Transfer) lookAfter(took time.Duration) time.Duration {
	return max(cmp.Or(t.lookEvery, lookEvery), lookShare*took)
}

// momentAfter is how long what was looked at counts as seen a moment ago: a second, which is lookEvery over pauseShare.
func (t *Transfer) momentAfter() time.Duration { return t.lookAfter(0) / pauseShare }

// deleteSource removes at the source what the target holds now: what is owned before its owners, nothing but the very
// objects of the plan. Before each level both sides are asked again: whatever has happened since Verified, nothing is
// deleted that the target does not hold, and nothing beside a source that works on the same machines again. Kinds of which the
// plan has no object are looked at before the roots are deleted, and as often as lookEvery says before.
func (t *Transfer) deleteSource(ctx context.Context, s *mover.State, emit Emit) (mover.Outcome, error) {
	levels := mover.Levels(s.Plan)
	slices.Reverse(levels)
	spared := false
	for _, level := range levels {
		todo := byCluster(slices.DeleteFunc(level, func(item mover.Item) bool { return !remains(s, item) }))
		began := time.Now()
		there, err := t.mayDelete(ctx, s, slices.ContainsFunc(todo, func(item mover.Item) bool { return pause.IsRoot(item.Ref) }))
		if err != nil {
			return nil, err
		}
		if !spared {
			if err := t.spare(ctx, s.Plan); err != nil {
				return nil, err
			}
			spared = true
		}
		looked, paused := time.Now(), began // paused: when the pause was seen, unless something was deleted since
		next := t.lookAfter(looked.Sub(began))
		for chunk := range slices.Chunk(todo, deleteChunk) {
			if began = time.Now(); began.Sub(looked) > next {
				if there, err = t.mayDelete(ctx, s, true); err != nil {
					return nil, err
				}
				looked, paused = time.Now(), began
				next = t.lookAfter(looked.Sub(began))
			}
			if time.Since(paused) > t.momentAfter() {
				if err := t.keepPaused(ctx, rootsAbove(s.Roots, chunk)); err != nil {
					return nil, err
				}
			}
			paused = time.Time{}
			if err := t.deleteSome(ctx, chunk, there, emit); err != nil {
				return nil, err
			}
		}
	}
	return mover.SourceEmptied{}, t.sourceEmpty(ctx, s)
}

func (t *Transfer) deleteSome(ctx context.Context, chunk []mover.Item, there heads, emit Emit) error {
	return each(ctx, t.workers(), chunk, func(ctx context.Context, item mover.Item) (object.Ref, error) {
		typ, err := t.sourceType(item.Ref, item.Version)
		if err != nil {
			return item.Ref, err
		}
		return item.Ref, remove(ctx, t.Source, typ, item.Ref, item.UID, there[item.Ref])
	}, func(batch []object.Ref) error {
		return emit(mover.Deleted{Objects: batch})
	})
}

// byCluster has the items of a Cluster one after the other, so that few Clusters are asked whether they are paused before a chunk.
func byCluster(items []mover.Item) []mover.Item {
	slices.SortStableFunc(items, func(a, b mover.Item) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return items
}

// rootsAbove are the roots whose pause holds the items: their own Clusters, and every ClusterClass.
func rootsAbove(roots []pause.Root, items []mover.Item) []pause.Root {
	clusters := make(map[string]bool)
	for _, item := range items {
		clusters[item.Cluster] = true
	}
	return slices.DeleteFunc(slices.Clone(roots), func(r pause.Root) bool { return pause.IsCluster(r.Ref) && !clusters[r.Ref.Name] })
}

// mayDelete asks both sides whether the next deletion is safe, and returns what the source has: of all that a move looks at where
// everything is asked for, or was not looked at for lookEvery, and else of the kinds of the plan. A pause that somebody lifted is
// set again before anything else is judged of the source: while its controllers are at work they make again whatever a human takes
// away to solve what is found.
func (t *Transfer) mayDelete(ctx context.Context, s *mover.State, everything bool) (heads, error) {
	now, looked := time.Now(), t.lookedAt
	if everything = everything || now.Sub(looked) > t.lookAfter(0); everything {
		looked = now
	}
	t.lookedAt = time.Time{} // what stops the deletion is looked for again
	look, err := t.bothSides(ctx, s, everything)
	if err != nil {
		return nil, err
	}
	if err := held(s, look.copies, everything); err != nil {
		return nil, err
	}
	var again pausedAgain
	err = t.eachOf(ctx, s.Roots, look.roots, func(ctx context.Context, root pause.Root, typ kube.Type, u *unstructured.Unstructured) error {
		t.pauseAgain(ctx, &again, root, typ, u)
		return nil
	})
	if err := cmp.Or(again.err(), err); err != nil {
		return nil, err
	}
	if err := t.classesUnused(ctx, s, look.there); err != nil {
		return nil, err
	}
	if err := t.recreated(ctx, s.Plan, look.there); err != nil {
		return nil, err
	}
	err = strand(look.unplanned, "nothing more is deleted at the source, because the source would lose what came after the plan was made",
		"copy it to the target if it is needed there; then delete it at the source and take its finalizers off, because nothing there acts on them, "+
			"or remove the owner reference to keep it: the move continues by itself")
	if err != nil {
		return nil, err
	}
	if err := t.eachOf(ctx, s.Roots, look.roots, t.markEmptying); err != nil {
		return nil, err
	}
	if err := t.atRest(ctx, s); err != nil {
		return nil, err
	}
	t.lookedAt = looked
	return look.there, nil
}

// atRest waits, after somebody lifted the pause of the source, until its controllers have taken note of the pause again. One
// that is still at work replaces a Machine that is deleted under its hands.
func (t *Transfer) atRest(ctx context.Context, s *mover.State) error {
	if !t.lifted.Load() {
		return nil
	}
	members, _, err := t.members(ctx, s.Spec, everyKind)
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

// sourceEmpty lists the source again: none of its controllers may work on what the target is about to resume.
func (t *Transfer) sourceEmpty(ctx context.Context, s *mover.State) error {
	moves := slices.DeleteFunc(slices.Clone(s.Plan), func(item mover.Item) bool { return item.Keep != "" || !acts(item) })
	there, err := t.present(ctx, t.Source, t.types, moves)
	if err != nil {
		return err
	}
	return t.recreated(ctx, moves, headsOf(there))
}

// keepPaused makes sure that the remaining objects of the source are still paused: if their controllers reconciled, a
// deletion would reach the infrastructure.
func (t *Transfer) keepPaused(ctx context.Context, roots []pause.Root) error {
	var again pausedAgain
	err := t.eachRoot(ctx, roots, func(ctx context.Context, root pause.Root, typ kube.Type, u *unstructured.Unstructured) error {
		if u == nil || u.GetUID() != root.UID || t.pauseAgain(ctx, &again, root, typ, u) {
			return nil
		}
		return t.markEmptying(ctx, root, typ, u)
	})
	return cmp.Or(again.err(), err)
}

// eachOf works on the roots that are still at the source, of which have is what it has.
func (t *Transfer) eachOf(ctx context.Context, roots []pause.Root, have objects,
	work func(context.Context, pause.Root, kube.Type, *unstructured.Unstructured) error,
) error {
	return parallel(ctx, t.workers(), roots, func(ctx context.Context, root pause.Root) error {
		u := have[root.Ref]
		if u == nil || u.GetUID() != root.UID {
			return nil
		}
		typ, err := t.kind(root.Ref)
		if err != nil {
			return err
		}
		return work(ctx, root, typ, u)
	})
}

// markEmptying records on a root that it is being emptied, for a rollback by an older log. It is done before the first
// deletion, and not before that is known to be safe, because a marked source does not resume.
func (t *Transfer) markEmptying(ctx context.Context, root pause.Root, typ kube.Type, u *unstructured.Unstructured) error {
	if isEmptying(u) {
		return nil
	}
	return hold.Annotate(ctx, t.Source, typ, root.Ref, root.UID, map[string]any{object.EmptyingAnnotation: t.ID})
}

func isEmptying(u *unstructured.Unstructured) bool {
	_, marked := u.GetAnnotations()[object.EmptyingAnnotation]
	return marked
}

// remove deletes an object without its controllers: it is paused, so no controller handles its finalizers. Where it has
// finalizers, one patch removes them and sets the mark with which webhooks allow the deletion; then the object is deleted.
// Both requests name the UID. An object with another UID is not removed, because the planned one is gone. One without
// finalizers is deleted at once, and gets the mark only where the deletion is denied without it. have is the object as just
// observed.
func remove(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, have head) error {
	const tries = 4 // two are needed when a finalizer comes back between the patch and the deletion, one more after a denial
	denied := false
	for range tries {
		if have.uid != uid {
			return nil
		}
		if denied || have.finalizers {
			if err := release(ctx, c, typ, ref, have); err != nil && !gone(err) && !apierrors.IsConflict(err) {
				return err
			}
		}
		removed, err := c.Delete(ctx, typ, ref.Namespace, ref.Name, uid)
		switch {
		case removed, gone(err):
			return nil
		case err == nil, apierrors.IsConflict(err):
		case !denied && !have.released && denial(err) != "" && !kube.Unpermitted(err):
			denied = true
		default:
			return err
		}
		now, err := c.Get(ctx, typ, ref.Namespace, ref.Name)
		if gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		have = headOf(now)
	}
	return fmt.Errorf("%s: delete %s: a controller keeps putting its finalizers back", c.Name, ref)
}

// release marks an object as moved and removes its finalizers. It is deleted right after it is marked: some controllers
// add their finalizer again on a paused object (cluster-api issue 11812), but the API server rejects new finalizers on
// one that is being deleted.
func release(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, have head) error {
	if have.released && (!have.deleting || !have.finalizers) {
		return nil
	}
	return patchRelease(ctx, c, typ, ref, have.uid)
}

// patchRelease takes the finalizers off and says that it is for a move, in one write. It pauses the object too: the controllers of some
// kinds, as of the add-on provider for Helm, do not follow the pause of the Cluster, and would put their finalizer back and then act on
// the deletion.
func patchRelease(ctx context.Context, c *kube.Cluster, typ kube.Type, ref object.Ref, uid types.UID, dryRun ...string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "finalizers": nil, "annotations": map[string]any{object.DeleteForMoveAnnotation: "", object.PausedAnnotation: ""},
	}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, "release "+ref.String(), typ, ref.Namespace, ref.Name, patch, dryRun...)
}

func gone(err error) bool { return apierrors.IsNotFound(err) }

// pausedAgain are the roots whose pause somebody removed, each with the error of setting it again. All of them are paused again before an
// error is returned: a tool that removes one pause removes that of every Cluster, and the controllers of each make machines. The zero
// value is ready for use.
type pausedAgain struct {
	mu    sync.Mutex
	roots map[object.Ref]error
}

// pauseAgain pauses a root that is not paused any more, and reports whether it was one.
func (t *Transfer) pauseAgain(ctx context.Context, again *pausedAgain, root pause.Root, typ kube.Type, u *unstructured.Unstructured) bool {
	if pause.RootOf(object.Observe(u)).Found {
		return false
	}
	err := hold.Set(ctx, t.Source, typ, root, t.mark())
	if err == nil {
		t.lifted.Store(true)
	}
	again.mu.Lock()
	defer again.mu.Unlock()
	if again.roots == nil {
		again.roots = make(map[object.Ref]error)
	}
	again.roots[root.Ref] = err
	return true
}

// err returns why a root could not be paused, else that they were not paused, and nil if all were.
func (p *pausedAgain) err() error {
	refs := slices.SortedFunc(maps.Keys(p.roots), object.Compare)
	for _, ref := range refs {
		if err := p.roots[ref]; err != nil {
			return err
		}
	}
	switch more := len(refs) - 1; more {
	case -1:
		return nil
	case 0:
		return liftedPause(refs[0], "it was not paused")
	default:
		return liftedPause(refs[0], fmt.Sprintf("it was not paused, and %d more were not", more))
	}
}

func liftedPause(ref object.Ref, why string) error {
	return &waitError{
		what: "somebody lifted the pause of the source, and it was set again; nothing is deleted before the source is at rest: " + ref.String() + ": " + why,
		next: "find out what lifts it (a GitOps tool?), and stop that for the time of the move",
	}
}
