package transfer

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// coOwn adds the owners of what moves to an object of the target that is used instead of the copy, if it has owners
// there already: the garbage collector would delete it with those, although what moves uses it too. An object without
// owners is left without owners.
func (t *Transfer) coOwn(ctx context.Context, item mover.Item, onto kube.Type, want, have *unstructured.Unstructured) error {
	owners := have.GetOwnerReferences()
	if item.Keep != "" || item.Ref.Group != "" || len(owners) == 0 {
		return nil
	}
	there := len(owners)
	for _, owner := range want.GetOwnerReferences() {
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			owner.Controller = nil // an object has one controller at most
			owners = append(owners, owner)
		}
	}
	if len(owners) == there {
		return nil
	}
	return setOwners(ctx, t.target, onto, have, owners)
}

// disown takes copies that are about to be removed from the owners of objects that stay, before the first of them goes. Nothing
// but the target tells which objects those are: a process may have died after it added an owner.
func (t *Transfer) disown(ctx context.Context, level []mover.Item, there objects) error {
	return parallel(ctx, t.workers(), level, func(ctx context.Context, item mover.Item) error {
		have := there[item.Ref]
		if have == nil || t.isOurs(have) || item.Keep != "" || item.Ref.Group != "" {
			return nil
		}
		removed := make(map[types.UID]bool)
		for _, o := range item.Owners {
			if owner := there[o.Ref]; owner != nil && t.isOurs(owner) {
				removed[owner.GetUID()] = true
			}
		}
		onto, err := t.targetType(item.Ref, item.Version)
		if err != nil {
			return err
		}
		if err := dropOwners(ctx, t.target, onto, have, removed); !gone(err) {
			return err
		}
		return nil
	})
}

// spare takes what stays at the source from its owners that leave it, before the first of them is deleted: the garbage collector would
// delete it with the last one.
func (t *Transfer) spare(ctx context.Context, plan []mover.Item) error {
	leaves := make(map[types.UID]bool)
	left := make(map[object.Ref]bool)
	for _, item := range plan {
		if item.Keep == "" {
			leaves[item.UID], left[item.Ref] = true, true
		}
	}
	owned := slices.DeleteFunc(slices.Clone(plan), func(item mover.Item) bool {
		return item.Keep == "" || !slices.ContainsFunc(item.Owners, func(o object.Owner) bool { return left[o.Ref] })
	})
	return parallel(ctx, t.workers(), owned, func(ctx context.Context, item mover.Item) error {
		typ, err := t.sourceType(item.Ref, item.Version)
		if err != nil {
			return err
		}
		have, err := t.Source.Get(ctx, typ, item.Ref.Namespace, item.Ref.Name)
		if gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return dropOwners(ctx, t.Source, typ, have, leaves)
	})
}

// dropOwners takes the removed owners off an object.
func dropOwners(ctx context.Context, c *kube.Cluster, typ kube.Type, have *unstructured.Unstructured, removed map[types.UID]bool) error {
	owners := have.GetOwnerReferences()
	rest := slices.DeleteFunc(slices.Clone(owners), func(o metav1.OwnerReference) bool { return removed[o.UID] })
	if len(rest) == len(owners) {
		return nil
	}
	return setOwners(ctx, c, typ, have, rest)
}

// setOwners writes the whole list, as the object was read: after a write by anybody else the step begins again.
func setOwners(ctx context.Context, c *kube.Cluster, typ kube.Type, have *unstructured.Unstructured, owners []metav1.OwnerReference) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": have.GetUID(), "resourceVersion": have.GetResourceVersion(), "ownerReferences": owners,
	}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, "set the owners of "+have.GetKind()+" "+have.GetName(), typ, have.GetNamespace(), have.GetName(), patch)
}
