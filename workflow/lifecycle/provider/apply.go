package provider

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// ApplyWith are the inputs of kind Apply that the workflows use.
type ApplyWith struct {
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

type clusterRecord struct {
	Existed bool `json:"existed,omitempty"`
}

// applyObjects applies a cluster's objects without waiting until they are ready. In a local run it
// also creates a missing namespace. A run of the daemon may lack the permission to do that.
func (t Target) applyObjects(apply task.Kind, objects []*unstructured.Unstructured) error {
	if err := check(t.Cluster, objects); err != nil {
		return task.Final(err)
	}
	var before clusterRecord
	noted, err := t.Recorded(clusterPart, &before)
	if err != nil {
		return err
	}
	if !noted {
		if before.Existed, err = t.Exists(); err != nil {
			return err
		}
		if err := t.Record(clusterPart, before, before.Existed); err != nil {
			return err
		}
	}
	if t.Local() {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": corev1.SchemeGroupVersion.String(), "kind": "Namespace", "metadata": map[string]any{"name": t.Namespace},
		}}
		objects = append([]*unstructured.Unstructured{namespace}, objects...)
	}
	_, err = t.Perform(objectsPart, apply, ApplyWith{Manifests: objects, Cluster: t.Manager, Namespace: t.Namespace, Wait: new(false)})
	return err
}

// removeObjects undoes applyObjects. It deletes the Cluster and its machines first, while the
// objects that their controllers need still exist. made reports whether the run created the
// cluster.
func (t Target) removeObjects(apply task.Kind) (made bool, err error) {
	var before clusterRecord
	noted, err := t.Recorded(clusterPart, &before)
	if err != nil || !noted {
		return false, err
	}
	if made = !before.Existed; made {
		if err := t.removeOwnCluster(); err != nil {
			return made, err
		}
	}
	return made, t.Revert(objectsPart, apply, ApplyWith{Cluster: t.Manager, Namespace: t.Namespace})
}

// removeOwnCluster deletes the Cluster that this run created. It fails if another Cluster has the
// same name, because that Cluster may use the same objects.
func (t Target) removeOwnCluster() error {
	on, err := t.open()
	if err != nil {
		return err
	}
	s, err := t.readFrom(on)
	if err != nil || s.Object == nil {
		return err
	}
	own, err := t.isOwn(s.Object)
	if err != nil {
		return err
	}
	if !own && t.Started(objectsPart) {
		return task.Final(fmt.Errorf("Cluster %s was not created by this run: it and all objects of the template are kept. "+
			"Delete the objects that you do not need by hand, then mark the task undone", t.fullName()))
	}
	if !own {
		return nil
	}
	if err := t.remove(s.Object.GetUID()); err != nil {
		return err
	}
	return t.checkNameFree(on)
}

// isOwn reports whether this run created a Cluster: it has the run's annotation or, once all
// objects were applied, the recorded UID. Another client may have created a Cluster with this name
// after the run found none.
func (t Target) isOwn(u *unstructured.Unstructured) (bool, error) {
	marked, err := t.Created(objectsPart, u)
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
	output := t.Output(objectsPart)
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

// RestoreAnnotation sets on a Cluster that was moved back the annotation of the task by, which
// created it. A moved copy has neither the annotation nor the recorded UID.
func (t Target) RestoreAnnotation(by string) error {
	on, err := t.open()
	if err != nil {
		return err
	}
	ref := access.ObjectRef{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Namespace: t.Namespace, Name: t.Name}
	return on.Merge(t, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{access.StepKeyAnnotation: t.StepKeyOf(by, objectsPart)}}})
}

// check fails if the specified Cluster is not among the objects. It sets the namespace of objects
// that have none.
func check(spec Cluster, objects []*unstructured.Unstructured) error {
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
	return fmt.Errorf("the provider's objects contain Cluster %v, not %s: use ${CLUSTER_NAME} and ${NAMESPACE} in the template", names, spec.fullName())
}

// Exists reports whether the cluster exists on the manager.
func (t Target) Exists() (bool, error) {
	s, err := t.read()
	return s.Object != nil, err
}

// OtherClusters returns the names of all other Clusters on the manager, in all namespaces.
func (t Target) OtherClusters() (names []string, err error) {
	on, err := t.open()
	if err != nil {
		return nil, err
	}
	err = on.Kube.List(t, clusterType(), "", func(u *unstructured.Unstructured) error {
		if u.GetNamespace() != t.Namespace || u.GetName() != t.Name {
			names = append(names, u.GetNamespace()+"/"+u.GetName())
		}
		return nil
	})
	return names, err
}
