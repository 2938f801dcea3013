package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/test/testbed"
)

// Inventory lists everything of Cluster API in a namespace of a side, including the Secrets of its clusters.
type Inventory struct {
	Names   []string // "Kind name", sorted
	Touched []string // the names of paused objects and of those with an annotation of a move, each with the reason
}

// capiGroups is the suffix of the names of all API groups of Cluster API and its providers.
const capiGroups = "cluster.x-k8s.io"

// Take reads the inventory of a namespace.
func Take(ctx context.Context, side *testbed.Side, namespace string) (Inventory, error) {
	var inv Inventory
	kinds, err := kinds(side)
	if err != nil {
		return inv, fmt.Errorf("taking the inventory of %s: %w", side.Name(), err)
	}
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		selection := []client.ListOption{client.InNamespace(namespace)}
		if gvk.Group == "" {
			selection = append(selection, client.HasLabels{clusterv1.ClusterNameLabel})
		}
		if err := side.Client().List(ctx, list, selection...); err != nil {
			return inv, fmt.Errorf("taking the inventory of %s: %w", side.Name(), err)
		}
		for i := range list.Items {
			name := gvk.Kind + " " + list.Items[i].GetName()
			inv.Names = append(inv.Names, name)
			if how := touch(&list.Items[i]); how != "" {
				inv.Touched = append(inv.Touched, name+": "+how)
			}
		}
	}
	slices.Sort(inv.Names)
	return inv, nil
}

// kinds returns the namespaced kinds of Cluster API that a side serves, and Secret.
func kinds(side *testbed.Side) ([]schema.GroupVersionKind, error) {
	config := side.Config()
	config.Timeout = 15 * time.Second
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	served, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	out := []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}}
	for _, group := range served {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range group.APIResources {
			if strings.HasSuffix(gv.Group, capiGroups) && slices.Contains(r.Verbs, "list") {
				out = append(out, gv.WithKind(r.Kind))
			}
		}
	}
	return out, nil
}

// touch returns what a move or a pause has left on an object, or "".
func touch(u *unstructured.Unstructured) string {
	for key := range u.GetAnnotations() {
		switch {
		case strings.HasPrefix(key, object.OwnPrefix), key == object.DeleteForMoveAnnotation, key == object.PausedAnnotation:
			return "annotation " + key
		}
	}
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); paused {
		return "spec.paused"
	}
	if paused, _, _ := object.Condition(u, clusterv1.PausedCondition); paused == object.True {
		return "condition " + clusterv1.PausedCondition
	}
	return ""
}

// Missing returns the names that are in want but not in have, at most the first few.
func Missing(want, have []string) string {
	const few = 5
	gone := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return slices.Contains(have, name) })
	if len(gone) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(gone[:few], ", "), len(gone)-few)
	}
	return strings.Join(gone, ", ")
}
