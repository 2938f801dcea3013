package transfer

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// addOwners adds the owners of a moving object to the adopted object, have, if that already has
// owners. Otherwise the garbage collector could delete the adopted object together with its present
// owners, while the copies need it.
func (t *Transfer) addOwners(ctx context.Context, item mover.Item, onto kube.Type, want, have *unstructured.Unstructured) error {
	owners := have.GetOwnerReferences()
	if item.KeepReason != "" || item.Ref.Group != "" || len(owners) == 0 {
		return nil
	}
	for _, owner := range want.GetOwnerReferences() {
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			owner.Controller = nil // an object has at most one
			owners = append(owners, owner)
		}
	}
	return setOwners(ctx, t.target, onto, have, owners)
}

// removeCopyOwners removes the copies that a rollback is about to delete from the owners of adopted
// objects, which stay on the target. It must be called before the first copy is deleted. It relies
// only on the target's state, because a process may have stopped right after it added an owner.
func (t *Transfer) removeCopyOwners(ctx context.Context, level []mover.Item, there objects) error {
	return kube.ForEach(ctx, t.workers(), level, func(ctx context.Context, item mover.Item) error {
		have := there[item.Ref]
		if have == nil || t.isOurs(have) || item.KeepReason != "" || item.Ref.Group != "" {
			return nil
		}
		removed := make(map[types.UID]bool)
		for _, o := range item.Owners {
			if owner := there[o.Ref]; owner != nil && t.isOurs(owner) {
				removed[owner.GetUID()] = true
			}
		}
		onto, err := t.typeOf(t.target, item.Ref, item.Version)
		if err != nil {
			return err
		}
		return client.IgnoreNotFound(dropOwners(ctx, t.target, onto, have, removed))
	})
}

// detachRemaining removes moving owners from objects that stay at the source. This must precede the
// first deletion, because the garbage collector deletes an object with its last owner.
func (t *Transfer) detachRemaining(ctx context.Context, plan []mover.Item) error {
	leaves := make(map[types.UID]bool)
	left := make(map[object.Ref]bool)
	for _, item := range plan {
		if item.KeepReason == "" {
			leaves[item.UID], left[item.Ref] = true, true
		}
	}
	owned := slices.DeleteFunc(slices.Clone(plan), func(item mover.Item) bool {
		return item.KeepReason == "" || !slices.ContainsFunc(item.Owners, func(o object.Owner) bool { return left[o.Ref] })
	})
	return kube.ForEach(ctx, t.workers(), owned, func(ctx context.Context, item mover.Item) error {
		typ, err := t.typeOf(t.Source, item.Ref, item.Version)
		if err != nil {
			return err
		}
		have, err := t.Source.Find(ctx, typ, item.Ref)
		if have == nil {
			return err
		}
		return dropOwners(ctx, t.Source, typ, have, leaves)
	})
}

func dropOwners(ctx context.Context, c *kube.Cluster, typ kube.Type, have *unstructured.Unstructured, removed map[types.UID]bool) error {
	rest := slices.DeleteFunc(have.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return removed[o.UID] })
	return setOwners(ctx, c, typ, have, rest)
}

// setOwners fails if another client has written to the object since it was read; the step is then
// retried.
func setOwners(ctx context.Context, c *kube.Cluster, typ kube.Type, have *unstructured.Unstructured, owners []metav1.OwnerReference) error {
	if len(owners) == len(have.GetOwnerReferences()) {
		return nil
	}
	return c.Patch(ctx, "set the owners of "+have.GetKind()+" "+have.GetName(), typ, object.RefOf(have), map[string]any{"metadata": map[string]any{
		"uid": have.GetUID(), "resourceVersion": have.GetResourceVersion(), "ownerReferences": owners,
	}})
}
