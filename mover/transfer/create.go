package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause/hold"
)

type createdObject struct {
	ref     object.Ref
	uid     types.UID
	adopted bool
}

// create creates every missing planned object, owners first and in parallel within a level.
func (t *Transfer) create(ctx context.Context, s *mover.State, emit Emit) (mover.Outcome, error) {
	first := !t.command && !s.Posted
	if !s.Posted {
		if err := emit(mover.CreateStarted{}); err != nil {
			return nil, err
		}
	}
	var there objects
	if !first { // a first attempt finds an existing object when Create fails
		var err error
		if there, err = t.listPresent(ctx, t.target, s.Plan); err != nil {
			return nil, err
		}
	}
	roots := rootsOf(s)
	uids := make(map[object.Ref]types.UID, len(s.Plan)) // of copies in earlier levels
	maps.Copy(uids, s.Created)
	missing := slices.DeleteFunc(slices.Clone(s.Plan), func(item mover.Item) bool { return uids[item.Ref] != "" })
	var read objects // all originals, if at most maxInMemory: to read them by level would need a round trip for each level
	ready, readying := errgroup.WithContext(ctx)
	ready.Go(func() error { return t.ensureNamespaces(readying, s.Plan) })
	if t.archive == nil && len(missing) <= maxInMemory {
		ready.Go(func() (err error) {
			read, err = t.readOriginals(readying, missing)
			return err
		})
	}
	if err := ready.Wait(); err != nil {
		return nil, err
	}
	for _, todo := range splitShared(mover.Levels(missing)) {
		work := func(ctx context.Context, i int, source *unstructured.Unstructured) (createdObject, error) {
			item := todo[i]
			if err := t.checkPlanned(item, source); err != nil {
				return createdObject{}, err
			}
			want, err := mover.Rewrite(source, item, t.copyAnnotations(item, roots[item.Ref].Found), uids)
			if err != nil {
				return createdObject{}, err
			}
			return t.createOne(ctx, s.Spec, item, source, want, there[item.Ref])
		}
		created := make(map[object.Ref]types.UID, len(todo)) // separate from uids, which work reads meanwhile
		hand := func(batch []createdObject) error {
			out := mover.Created{Objects: make(map[object.Ref]types.UID, len(batch))}
			for _, m := range batch {
				created[m.ref], out.Objects[m.ref] = m.uid, m.uid
				if m.adopted {
					out.Adopted = append(out.Adopted, m.ref)
				}
			}
			return emit(out)
		}
		var err error
		if read == nil {
			err = eachOriginal(ctx, t, todo, work, hand)
		} else {
			err = each(ctx, t.workers(), indices(todo), func(ctx context.Context, i int) (createdObject, error) { return work(ctx, i, read[todo[i].Ref]) }, hand)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(uids, created)
	}
	return mover.AllCreated{}, nil
}

// splitShared returns the levels, split so that each object that stays at the source is a separate
// part. These objects are then created one by one, in the same order in every move. Otherwise two
// moves that create the same objects at the same time could wait for each other.
func splitShared(levels [][]mover.Item) (parts [][]mover.Item) {
	for _, level := range levels {
		shared := slices.DeleteFunc(slices.Clone(level), func(item mover.Item) bool { return item.KeepReason == "" })
		slices.SortFunc(shared, func(a, b mover.Item) int { return object.Compare(a.Ref, b.Ref) })
		for _, item := range shared {
			parts = append(parts, []mover.Item{item})
		}
		if own := slices.DeleteFunc(slices.Clone(level), func(item mover.Item) bool { return item.KeepReason != "" }); len(own) > 0 {
			parts = append(parts, own)
		}
	}
	return parts
}

func (t *Transfer) ensureNamespaces(ctx context.Context, plan []mover.Item) error {
	seen := make(map[string]bool)
	for _, item := range plan {
		namespace := item.Ref.Namespace
		if namespace == "" || seen[namespace] {
			continue
		}
		seen[namespace] = true
		_, err := t.target.NamespaceUID(ctx, namespace)
		if apierrors.IsNotFound(err) {
			ns := &unstructured.Unstructured{}
			ns.SetGroupVersionKind(kube.NamespaceType().GVK())
			ns.SetName(namespace)
			if _, err = t.target.Create(ctx, kube.NamespaceType(), ns); apierrors.IsAlreadyExists(err) {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createOne creates the copy of one object, or uses an existing one: a copy that an earlier process
// of this move created, or an adoptable object. have is the object as read from the target, or nil
// if it did not exist or was not read.
func (t *Transfer) createOne(ctx context.Context, spec mover.Spec, item mover.Item, source, want, have *unstructured.Unstructured) (createdObject, error) {
	onto, err := t.typeOf(t.target, item.Ref, item.Version)
	if err != nil {
		return createdObject{}, err
	}
	if have == nil {
		have, err = t.target.Create(ctx, onto, want)
		if apierrors.IsAlreadyExists(err) { // created after have was read, or never read
			have, err = t.target.Get(ctx, onto, item.Ref.Namespace, item.Ref.Name)
		}
		if err != nil {
			return createdObject{}, err
		}
	}
	switch holder := hold.FirstHolder(have); holder {
	case t.holder():
		if isReleased(have) {
			return createdObject{}, finalError("create another Move", "the rollback of this move has removed the finalizers of %s on the target to delete it",
				item.Ref)
		}
	case hold.Holder{}:
		return t.adopt(ctx, item, onto, want)
	default:
		// The other move may still delete the object. It removes its annotations when it ends.
		return createdObject{}, &waitError{
			message: fmt.Sprintf("%s on the target is held by another move, %s: waiting until that move ends", item.Ref, holder),
			next:    "wait for that move, or abort it",
		}
	}
	if err := t.carryOver(ctx, spec, onto, source, have); err != nil {
		return createdObject{}, err
	}
	return createdObject{ref: item.Ref, uid: have.GetUID()}, nil
}

// checkPlanned returns an error unless source is the original that the plan describes, unchanged.
// source is nil if the original was deleted.
func (t *Transfer) checkPlanned(item mover.Item, source *unstructured.Unstructured) error {
	switch {
	case t.archive != nil:
		return nil // Archive.Object compared it with the index
	case source == nil:
		return finalError("find out who deleted it while it was paused", "%s was deleted at the source after the plan was recorded", item.Ref)
	case source.GetUID() != item.UID:
		return finalError("find out who replaced it while it was paused", "%s was replaced at the source after the plan was recorded", item.Ref)
	case item.KeepReason != "":
		return nil // it stays at the source and may change
	}
	hash, err := mover.ContentHash(source)
	if err != nil {
		return err
	}
	// Above all, a Cluster whose pause was removed must not be reconciled on the target.
	if hash != item.Hash || isSecret(item.Ref) && source.GetResourceVersion() != item.ResourceVersion {
		return finalError("find out who wrote to it while it was paused", "%s changed at the source after the plan was recorded", item.Ref)
	}
	return nil
}

// adopt uses an existing object of the target instead of a copy. It adds owners and bindings to it,
// and changes nothing else.
func (t *Transfer) adopt(ctx context.Context, item mover.Item, onto kube.Type, want *unstructured.Unstructured) (createdObject, error) {
	have, err := t.target.Get(ctx, onto, item.Ref.Namespace, item.Ref.Name)
	if err != nil {
		return createdObject{}, err
	}
	if same, why := isAdoptable(item.KeepReason != "", item.Ref, want, have); !same {
		what, remedy := t.describeCollision(why, have)
		return createdObject{}, finalError(remedy, "%s already exists on the target and is different: %s", item.Ref, what)
	}
	if err := t.addOwners(ctx, item, onto, want, have); err != nil {
		return createdObject{}, err
	}
	if err := t.completeRecord(ctx, item, onto, want, have); err != nil {
		return createdObject{}, err
	}
	return createdObject{ref: item.Ref, uid: have.GetUID(), adopted: true}, nil
}

// completeRecord adds missing bindings to a ClusterResourceSetBinding that the target's controller
// created before the move did.
func (t *Transfer) completeRecord(ctx context.Context, item mover.Item, onto kube.Type, want, have *unstructured.Unstructured) error {
	if !mover.IsRecord(item.Ref) {
		return nil
	}
	parts, missing := mover.MergedRecord(want, have)
	if !missing {
		return nil
	}
	return t.patchCopy(ctx, onto, have, map[string]any{
		"metadata": map[string]any{"uid": have.GetUID(), "resourceVersion": have.GetResourceVersion()}, "spec": map[string]any{"bindings": parts},
	})
}

// carryOver copies to a new copy what a create request cannot set: the managed fields and, for
// kinds in CarryStatus, the status. It omits the condition Paused, which only a controller of the
// target may report.
func (t *Transfer) carryOver(ctx context.Context, spec mover.Spec, onto kube.Type, source, have *unstructured.Unstructured) error {
	if fields := appliedFields(source); len(fields) > 0 && len(appliedFields(have)) == 0 {
		if err := t.patchCopy(ctx, onto, have, map[string]any{"metadata": map[string]any{"uid": have.GetUID(), "managedFields": fields}}); err != nil {
			return err
		}
	}
	if !slices.Contains(spec.CarryStatus, onto.GroupKind()) {
		return nil
	}
	status := object.WithoutCondition(source, clusterv1.PausedCondition)
	if status == nil {
		return nil
	}
	return t.patchCopy(ctx, onto, have, map[string]any{"metadata": map[string]any{"uid": have.GetUID()}, "status": status}, "status")
}

func (t *Transfer) patchCopy(ctx context.Context, onto kube.Type, have *unstructured.Unstructured, body map[string]any, subresource ...string) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return t.target.Do(ctx, "complete "+have.GetKind()+" "+have.GetName(), func(ctx context.Context) error {
		_, err := t.target.Resource(onto, have.GetNamespace()).Patch(ctx, have.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: kube.FieldManager}, subresource...)
		return err
	})
}

// appliedFields returns the managed fields of an object that server-side apply has written, or nil
// for all other objects. If a copy lacked them, the topology controller or a GitOps tool could
// never remove a field that it once set, because a create request attributes all fields to scute.
func appliedFields(u *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	var fields []metav1.ManagedFieldsEntry
	applied := false
	for _, entry := range u.GetManagedFields() {
		if entry.Subresource != "" {
			continue
		}
		applied = applied || entry.Operation == metav1.ManagedFieldsOperationApply
		fields = append(fields, entry)
	}
	if !applied {
		return nil
	}
	return fields
}
