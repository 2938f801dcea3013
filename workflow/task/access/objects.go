package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/view"
	"scute.dev/workflow/task"
)

// Merge applies a merge patch with scute's field manager. If the object does not exist, it does
// nothing.
func (cl *Cluster) Merge(ctx context.Context, ref ObjectRef, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch of %s: %w", ref, err)
	}
	u := ref.object()
	err = cl.Kube.Do(ctx, "patch "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(kube.FieldManager))
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Create creates an object. If the object exists already, Create reads it into u, because an
// earlier request without a response may have created it.
func (cl *Cluster) Create(ctx context.Context, ref ObjectRef, u *unstructured.Unstructured) error {
	err := cl.Kube.Do(ctx, "create "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Create(ctx, u, client.FieldOwner(kube.FieldManager))
	})
	if !apierrors.IsAlreadyExists(err) {
		return FinalIfObjectRefused(ref, err)
	}
	live, err := cl.Find(ctx, ref)
	if err == nil && live == nil {
		err = fmt.Errorf("%s existed and was deleted meanwhile", ref)
	}
	if err != nil {
		return FinalIfObjectRefused(ref, err)
	}
	u.Object = live.Object
	return nil
}

// Mapping returns the mapping of a kind. known is false if the API server lacks the kind, which may
// be installed later.
func (cl *Cluster) Mapping(ctx context.Context, gvk schema.GroupVersionKind) (m *meta.RESTMapping, known bool, err error) {
	err = cl.Kube.Do(ctx, "discover its kinds", func(context.Context) error {
		m, err = cl.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if known = err == nil; known || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return m, known, FinalIfRefused(err)
}

// Qualify returns a reference with the right namespace: if the kind is namespaced, an empty
// namespace becomes the default; if the kind is cluster-scoped, the namespace becomes empty. known
// is false if the API server lacks the kind.
func (cl *Cluster) Qualify(ctx context.Context, ref ObjectRef, namespace string) (_ ObjectRef, known bool, err error) {
	m, known, err := cl.Mapping(ctx, ref.GVK())
	if err != nil || !known {
		return ref, false, err
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		ref.Namespace = cmp.Or(ref.Namespace, namespace)
	} else {
		ref.Namespace = ""
	}
	return ref, true, nil
}

// Find reads an object. It returns nil without an error if the object or its kind does not exist.
func (cl *Cluster) Find(ctx context.Context, ref ObjectRef) (*unstructured.Unstructured, error) {
	if _, known, err := cl.Mapping(ctx, ref.GVK()); err != nil || !known {
		return nil, err
	}
	u := ref.object()
	err := cl.Kube.Do(ctx, "get "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // nil means not found
	case err != nil:
		return nil, err
	}
	return u, nil
}

// Type returns how the API server serves the kind of an object.
func (cl *Cluster) Type(ctx context.Context, ref object.Ref) (typ kube.Type, err error) {
	err = cl.Kube.Do(ctx, "get "+ref.String(), func(context.Context) error {
		m, err := cl.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
		if err != nil {
			return notFoundIfUnserved(err)
		}
		typ = kube.Type{
			Group: ref.Group, Kind: ref.Kind, Plural: m.Resource.Resource, Versions: []string{m.Resource.Version}, Namespaced: m.Scope.Name() == meta.RESTScopeNameNamespace,
		}
		return nil
	})
	return typ, err
}

// Get reads an object in the version that its server prefers.
func (cl *Cluster) Get(ctx context.Context, ref object.Ref) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	typ, err := cl.Type(ctx, ref)
	if err != nil {
		return u, err
	}
	u.SetGroupVersionKind(typ.GVK())
	return u, cl.Kube.Do(ctx, "get "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
	})
}

// notFoundIfUnserved converts the error for an unknown kind to NotFound. Otherwise the error would
// be retried as transient.
func notFoundIfUnserved(err error) error {
	var none *meta.NoKindMatchError
	if errors.As(err, &none) {
		return apierrors.NewNotFound(schema.GroupResource{Group: none.GroupKind.Group, Resource: none.GroupKind.Kind}, "kind "+none.GroupKind.String())
	}
	return err
}

// Remove deletes the object with this UID, and waits until it is gone if wait is set. It returns
// nil if the name now belongs to another object.
func (cl *Cluster) Remove(ctx context.Context, c *task.Call, ref ObjectRef, uid types.UID, propagation metav1.DeletionPropagation, wait bool) error {
	err := Poll(ctx, c, func(ctx context.Context) (string, error) {
		u, err := cl.Find(ctx, ref)
		if err != nil || u == nil || u.GetUID() != uid {
			return "", err
		}
		if u.GetDeletionTimestamp() == nil {
			if err := cl.Delete(ctx, ref, uid, propagation); err != nil || !wait {
				return "", err
			}
			if u, err = cl.Find(ctx, ref); err != nil || u == nil || u.GetUID() != uid {
				return "", err
			}
		}
		if !wait {
			return "", nil
		}
		if f := u.GetFinalizers(); len(f) > 0 {
			return fmt.Sprintf("%s is being deleted and waits for finalizers: %s", ref, view.First(f)), nil
		}
		return ref.String() + " is being deleted", nil
	})
	if err != nil {
		return fmt.Errorf("deleting %s: %w", ref, FinalIfObjectRefused(ref, err))
	}
	return nil
}

// Delete deletes the object with this UID. It returns nil if the object is gone or its name now
// belongs to another object.
func (cl *Cluster) Delete(ctx context.Context, ref ObjectRef, uid types.UID, propagation metav1.DeletionPropagation) error {
	u := ref.object()
	err := cl.Kube.Do(ctx, "delete "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Delete(ctx, u, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation))
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
