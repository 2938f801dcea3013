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
	clusterPart = "cluster"
)

// clusterRecord records whether a cluster existed before the run.
type clusterRecord struct {
	Existed bool `json:"existed,omitempty"`
}

// applyObjects applies the objects of a cluster, without waiting until they are ready. A local run also creates the namespace
// if it is missing. In the daemon the namespace exists, and a run may not create one.
func applyObjects(c *sequence.Context, apply task.Kind, manager access.ClusterRef, spec provider.Cluster, objects []*unstructured.Unstructured) error {
	if err := check(spec, objects); err != nil {
		return task.Final(err)
	}
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	var before clusterRecord
	noted, err := c.Recorded(clusterPart, &before)
	if err != nil {
		return err
	}
	if !noted {
		s, err := readState(c, on, spec.Namespace, spec.Name)
		if err != nil {
			return err
		}
		before.Existed = s.Object != nil
		if err := c.Record(clusterPart, before, before.Existed); err != nil {
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

// removeObjects undoes applyObjects. It deletes the Cluster and its machines first, while the objects that their controllers need exist,
// and then the other objects. It keeps a cluster that existed before the run. made reports whether the run created the cluster.
func removeObjects(c *sequence.Context, apply task.Kind, manager access.ClusterRef, spec provider.Cluster) (made bool, err error) {
	var before clusterRecord
	noted, err := c.Recorded(clusterPart, &before)
	if err != nil || !noted {
		return false, err
	}
	if made = !before.Existed; made {
		if err := removeOwnCluster(c, manager, spec); err != nil {
			return made, err
		}
	}
	return made, c.Revert(objectsPart, apply, applyWith{Cluster: manager, Namespace: spec.Namespace})
}

// removeOwnCluster deletes the Cluster that the run created. It fails if another Cluster has this name, because it may use the same objects.
func removeOwnCluster(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	s, err := readState(c, on, spec.Namespace, spec.Name)
	if err != nil || s.Object == nil {
		return err
	}
	own, err := isOwn(c, s.Object)
	if err != nil {
		return err
	}
	if !own && c.Started(objectsPart) {
		return task.Final(fmt.Errorf("Cluster %s/%s was not created by this run: it and all objects of the template are kept. "+ //nolint:staticcheck // Cluster is the name of a kind
			"Delete the objects that you do not need by hand, then mark the task undone", spec.Namespace, spec.Name))
	}
	if !own {
		return nil
	}
	if err := remove(c, manager, spec, s.Object.GetUID()); err != nil {
		return err
	}
	return checkNameFree(c, on, spec)
}

// isOwn reports whether the run created a Cluster: the Cluster has the annotation of the run, or, if all objects were applied, the recorded UID.
// A Cluster without them may have been created by another client after the run first read it.
func isOwn(c *sequence.Context, u *unstructured.Unstructured) (bool, error) {
	marked, err := c.Created(objectsPart, u)
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
		return false, task.Final(fmt.Errorf("reading the recorded output: %w", err))
	}
	for _, o := range applied.Objects {
		if o.Ref() == access.RefOf(u).Ref() {
			return o.Action == "created" && (marked || o.UID == u.GetUID()), nil
		}
	}
	return marked, nil
}

// RestoreAnnotation sets the annotation of the run on a Cluster that the task by created and a move has brought back. The copies that a move makes have
// neither the annotation nor the UID.
func RestoreAnnotation(c *sequence.Context, by string, manager access.ClusterRef, spec provider.Cluster) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	ref := access.ObjectRef{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: spec.Namespace, Name: spec.Name}
	return on.Merge(c, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{access.StepKeyAnnotation: c.StepKeyOf(by, objectsPart)}}})
}

// check returns an error if the objects belong to another cluster.
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
		return errors.New("the provider's objects contain no Cluster of " + clusterv1.GroupVersion.Group + ": correct the template")
	}
	return fmt.Errorf("the provider's objects contain Cluster %v, not %s/%s: use ${CLUSTER_NAME} and ${NAMESPACE} in the template", names,
		spec.Namespace, spec.Name)
}

// Exists reports whether a manager has the cluster.
func Exists(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) (bool, error) {
	s, err := readFromManager(c, manager, spec)
	return s.Object != nil, err
}

// OtherClusters returns the names of all other Clusters of a manager, in all namespaces.
func OtherClusters(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) (names []string, err error) {
	on, err := c.Open(manager)
	if err != nil {
		return nil, err
	}
	err = on.Kube.List(c, clusterType(), "", func(u *unstructured.Unstructured) error {
		if u.GetNamespace() != spec.Namespace || u.GetName() != spec.Name {
			names = append(names, u.GetNamespace()+"/"+u.GetName())
		}
		return nil
	})
	return names, err
}
