package settled

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
)

// ErrVersion is returned if the API server does not serve the version of Cluster API's kinds that
// this package reads.
var ErrVersion = errors.New("the API server does not serve " + clusterv1.GroupVersion.String() + " (Cluster API v1.11 or newer): install it")

// Read reads an object of a kind that Supports accepts, and the objects that belong to it. It needs
// permission to get the object and the control plane of a Cluster, and to list MachineDeployments,
// MachineSets, MachinePools and Machines in the namespace.
func Read(ctx context.Context, c client.Client, kind schema.GroupKind, key client.ObjectKey) (State, error) {
	var s State
	var err error
	if s.Object, err = get(ctx, c, kind, key); err != nil || s.Object == nil {
		return s, err
	}
	cluster := s.Object.GetLabels()[clusterv1.ClusterNameLabel]
	if kind == clusterv1.GroupVersion.WithKind(clusterKind).GroupKind() {
		cluster = s.Object.GetName()
		if ref := object.Text(s.Object, "spec", "controlPlaneRef", "name"); ref != "" {
			kind := schema.GroupKind{Group: object.Text(s.Object, "spec", "controlPlaneRef", "apiGroup"), Kind: object.Text(s.Object, "spec", "controlPlaneRef", "kind")}
			if s.ControlPlane, err = get(ctx, c, kind, client.ObjectKey{Namespace: key.Namespace, Name: ref}); err != nil {
				return s, err
			}
		}
	} else if name := object.Text(s.Object, "spec", "clusterName"); name != "" {
		cluster = name
	}
	for _, kind := range []string{deploymentKind, setKind, poolKind, machineKind} {
		err := kube.EachPage("list "+kind, func(o metav1.ListOptions) (string, error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind + "List"))
			if err := c.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}, client.Limit(o.Limit), client.Continue(o.Continue)); err != nil {
				return "", err
			}
			for i := range list.Items {
				u := list.Items[i]
				u.SetAnnotations(nil) // large and not used
				u.SetManagedFields(nil)
				s.Members = append(s.Members, &u)
			}
			return list.GetContinue(), nil
		})
		if err != nil {
			return s, fmt.Errorf("listing the %ss of cluster %s/%s: %w", kind, key.Namespace, cluster, err)
		}
	}
	return s, nil
}

// get returns an object, or nil if it does not exist. It reads Cluster API's core kinds in the
// version that this package uses, and other kinds in the API server's preferred version.
func get(ctx context.Context, c client.Client, kind schema.GroupKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	var versions []string
	if kind.Group == clusterv1.GroupVersion.Group {
		versions = append(versions, clusterv1.GroupVersion.Version)
	}
	mapping, err := c.RESTMapper().RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) && len(versions) > 0 {
		return nil, ErrVersion
	}
	if err != nil {
		return nil, fmt.Errorf("looking up kind %s: %w", kind, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := c.Get(ctx, key, u); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	return u, nil
}
