package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
)

// CheckUnused returns an error if deleting an object would also delete objects that this run did
// not create: the objects of a CustomResourceDefinition, or the Clusters in a namespace. The error
// is not final, because the garbage collector may still be deleting such objects.
func (cl *Cluster) CheckUnused(ctx context.Context, u *unstructured.Unstructured) error {
	var kind schema.GroupKind
	namespace := ""
	switch ref := RefOf(u); {
	case ref.IsDefinition():
		kind.Group, _, _ = unstructured.NestedString(u.Object, "spec", "group")
		kind.Kind, _, _ = unstructured.NestedString(u.Object, "spec", "names", "kind")
	case ref.IsNamespace():
		kind = schema.GroupKind{Group: object.CoreGroup, Kind: "Cluster"}
		namespace = ref.Name
	default:
		return nil
	}
	list := &unstructured.UnstructuredList{}
	err := cl.Kube.Do(ctx, "list "+kind.String(), func(ctx context.Context) error {
		mapping, err := cl.Client.RESTMapper().RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			return nil // without the kind, there can be no such objects
		}
		if err != nil {
			return err
		}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		return cl.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if len(list.Items) > 0 {
		return fmt.Errorf("%s is in use: its deletion would also delete %s, which this run did not create: delete that object first", RefOf(u),
			RefOf(&list.Items[0]))
	}
	return nil
}
