package cluster

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
// there; then the rest. A cluster that was there before the run stays. made says that there was none.
func removeObjects(c *sequence.Context, apply task.Kind, manager access.ClusterRef, spec provider.Cluster) (made bool, err error) {
	var before found
	noted, err := c.Noted(ownPart, &before)
	if err != nil || !noted {
		return false, err
	}
	if made = !before.Existed; made {
		if err := removeOwn(c, manager, spec); err != nil {
			return made, err
		}
	}
	return made, c.Revert(objectsPart, apply, applyWith{Cluster: manager, Namespace: spec.Namespace})
}

// removeOwn removes the Cluster that the run has made. It fails if another has its name, which may be made of the same objects.
func removeOwn(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	s, err := look(c, on, spec.Namespace, spec.Name)
	if err != nil || s.Object == nil {
		return err
	}
	own, err := isOwn(c, s.Object)
	if err != nil {
		return err
	}
	if !own && c.Began(objectsPart) {
		return task.Final(fmt.Errorf("Cluster %s/%s is not the one that this run has made: it and all objects of the template stay. "+ //nolint:staticcheck // Cluster is the name of a kind
			"Delete by hand what must go, then mark the task undone", spec.Namespace, spec.Name))
	}
	if !own {
		return nil
	}
	if err := remove(c, manager, spec, s.Object.GetUID()); err != nil {
		return err
	}
	return vacant(c, on, spec)
}

// isOwn says whether the run has made a Cluster: it has the mark of the run, or, once all objects were applied, the UID of the one that was
// created. An attempt that applies them later may find one that somebody else has made since the first look.
func isOwn(c *sequence.Context, u *unstructured.Unstructured) (bool, error) {
	marked, err := c.Made(objectsPart, u)
	if err != nil {
		return false, err
	}
	var applied struct {
		Objects []struct {
			access.ObjectRef
			UID    types.UID `json:"uid"`
			Action string    `json:"action"`
		} `json:"objects"`
	}
	output := c.Output(objectsPart)
	if len(output) == 0 {
		return marked, nil
	}
	if err := json.Unmarshal(output, &applied); err != nil {
		return false, task.Final(fmt.Errorf("reading what was applied: %w", err))
	}
	for _, o := range applied.Objects {
		if o.Plain() == access.RefOf(u).Plain() {
			return o.Action == "created" && (marked || o.UID == u.GetUID()), nil
		}
	}
	return marked, nil
}

// Returned marks a Cluster that a move has brought back as made by the run, which a task has made of its objects: the copies of a move have
// neither its mark nor its UID.
func Returned(c *sequence.Context, by string, manager access.ClusterRef, spec provider.Cluster) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	ref := access.ObjectRef{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: spec.Namespace, Name: spec.Name}
	return on.Merge(c, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{access.MarkAnnotation: c.MarkOf(by, objectsPart)}}})
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
	s, err := lookThrough(c, manager, spec)
	return s.Object != nil, err
}

// Others are the Clusters beside this one that a manager has, in all namespaces.
func Others(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) (names []string, err error) {
	on, err := c.Open(manager)
	if err != nil {
		return nil, err
	}
	err = on.Kube.List(c, clusters(), "", func(u *unstructured.Unstructured) error {
		if u.GetNamespace() != spec.Namespace || u.GetName() != spec.Name {
			names = append(names, u.GetNamespace()+"/"+u.GetName())
		}
		return nil
	})
	return names, err
}
