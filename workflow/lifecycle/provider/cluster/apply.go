package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// applyWith are the inputs of the kind Apply that are used here.
type applyWith struct {
	Manifests []*unstructured.Unstructured `json:"manifests,omitempty"`
	Cluster   access.ClusterRef            `json:"cluster,omitzero"`
	Namespace string                       `json:"namespace,omitempty"`
	Wait      *bool                        `json:"wait,omitempty"`
	Force     bool                         `json:"force,omitempty"`
}

const (
	objectsPart = "objects"
	ownPart     = "cluster"
)

// found is what was there before a cluster was made.
type found struct {
	Existed bool `json:"existed,omitempty"`
}

// applyObjects applies the objects of a cluster and does not wait for their effects. A local run makes the namespace too, if
// it is missing; in the daemon it is there, and a run may not make any.
func applyObjects(c *sequence.Context, apply task.Kind, manager access.ClusterRef, spec provider.Cluster, objects []*unstructured.Unstructured) error {
	if err := check(spec, objects); err != nil {
		return task.Final(err)
	}
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	var before found
	noted, err := c.Noted(ownPart, &before)
	if err != nil {
		return err
	}
	if !noted {
		s, err := look(c, on, spec.Namespace, spec.Name)
		if err != nil {
			return err
		}
		before.Existed = s.Object != nil
		if err := c.Note(ownPart, before, before.Existed); err != nil {
			return err
		}
	}
	if c.Local() {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": corev1.SchemeGroupVersion.String(), "kind": "Namespace", "metadata": map[string]any{"name": spec.Namespace},
		}}
		objects = append([]*unstructured.Unstructured{namespace}, objects...)
	}
	no := false
	_, err = c.Perform(objectsPart, apply, applyWith{Manifests: objects, Cluster: manager, Namespace: spec.Namespace, Wait: &no})
	return err
}

// removeObjects is the inverse of applyObjects. The Cluster goes first, and its machines with it, while what they are made from is still
// there; then the rest. A cluster that was there before the run stays.
func removeObjects(c *sequence.Context, apply task.Kind, manager access.ClusterRef, spec provider.Cluster) error {
	var before found
	noted, err := c.Noted(ownPart, &before)
	if err != nil || !noted {
		return err
	}
	if !before.Existed {
		if err := removeOwn(c, manager, spec); err != nil {
			return err
		}
	}
	return c.Revert(objectsPart, apply, applyWith{Cluster: manager, Namespace: spec.Namespace})
}

// removeOwn removes the Cluster that the run has made. When its objects were applied to the end, it is the one of that name: a move, which
// may follow, takes the mark off its copies. Before that only the mark tells it from one that somebody else has made meanwhile.
func removeOwn(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	if c.Performed(objectsPart) {
		return remove(c, manager, spec, "")
	}
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	s, err := look(c, on, spec.Namespace, spec.Name)
	if err != nil || s.Object == nil {
		return err
	}
	own, err := c.Made(objectsPart, s.Object)
	if err != nil || !own {
		return err
	}
	return remove(c, manager, spec, s.Object.GetUID())
}

// check catches a template of another cluster before anything is made.
func check(spec provider.Cluster, objects []*unstructured.Unstructured) error {
	var names []string
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(spec.Namespace)
		}
		if o.GroupVersionKind().Group == clusterv1.GroupVersion.Group && o.GetKind() == "Cluster" {
			if o.GetName() == spec.Name && o.GetNamespace() == spec.Namespace {
				return nil
			}
			names = append(names, o.GetNamespace()+"/"+o.GetName())
		}
	}
	if len(names) == 0 {
		return errors.New("the provider's objects have no Cluster of " + clusterv1.GroupVersion.Group + ": correct the template")
	}
	return fmt.Errorf("the provider's objects make Cluster %v, not %s/%s: use ${CLUSTER_NAME} and ${NAMESPACE} in the template", names, spec.Namespace, spec.Name)
}

// Exists says whether a manager has the cluster.
func Exists(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) (bool, error) {
	on, err := c.Open(manager)
	if err != nil {
		return false, err
	}
	s, err := look(c, on, spec.Namespace, spec.Name)
	if err != nil {
		return false, err
	}
	return s.Object != nil, nil
}

// Others are the Clusters beside this one that a manager has, in all namespaces.
func Others(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) (names []string, err error) {
	on, err := c.Open(manager)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
	if err := on.Kube.Do(c, "list all Clusters", func(ctx context.Context) error { return on.Client.List(ctx, list) }); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if u := &list.Items[i]; u.GetNamespace() != spec.Namespace || u.GetName() != spec.Name {
			names = append(names, u.GetNamespace()+"/"+u.GetName())
		}
	}
	return names, nil
}
