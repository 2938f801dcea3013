package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// specimen has a cluster's objects of the watched kinds, as written by real controllers, owners first.
type specimen struct {
	name    string // of the cluster and its namespace; part of every object's name
	objects []*unstructured.Unstructured
}

// capture reads the objects of some kinds in a namespace with one cluster.
func capture(ctx context.Context, c client.Client, namespace string, kinds ...schema.GroupVersionKind) (*specimen, error) {
	s := &specimen{name: namespace}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("reading the %ss of %s: %w", kind.Kind, namespace, err)
		}
		for i := range list.Items {
			s.objects = append(s.objects, &list.Items[i])
		}
	}
	return s, nil
}

// captureControlPlane captures the cluster of a lane.
func captureControlPlane(ctx context.Context, l *lane) (*specimen, error) {
	s, err := capture(ctx, l.admin, l.name, clusterv1.GroupVersion.WithKind("Cluster"),
		controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"), clusterv1.GroupVersion.WithKind("Machine"))
	if err == nil && len(s.objects) != 2+replicas {
		err = fmt.Errorf("cluster %s has %d objects, want a Cluster, its control plane and %d machines", l.name, len(s.objects), replicas)
	}
	return s, err
}

// copies creates n copies of the cluster in one namespace without controllers.
func (s *specimen) copies(ctx context.Context, c client.Client, namespace string, n int) error {
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return fmt.Errorf("making the fleet: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return s.copy(ctx, c, namespace, fmt.Sprintf("cluster-%04d", i), nil) })
	}
	return group.Wait()
}

// copy creates one copy with its own names and new UIDs. If change is not nil, it is called for each object.
func (s *specimen) copy(ctx context.Context, c client.Client, namespace, name string, change func(original, o *unstructured.Unstructured)) error {
	words := []string{s.name, name}
	for _, original := range s.objects {
		o, err := renamed(original, words...)
		if err != nil {
			return err
		}
		o.SetNamespace(namespace)
		o.SetResourceVersion("")
		if change != nil {
			change(original, o)
		}
		status, has := o.Object["status"]
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("copying %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		words = append(words, string(original.GetUID()), string(o.GetUID()))
		if !has {
			continue
		}
		o.Object["status"] = status
		if err := c.Status().Update(ctx, o); err != nil {
			return fmt.Errorf("copying the status of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// renamed returns a copy of an object with some words replaced. Each word is followed by its replacement.
func renamed(original *unstructured.Unstructured, words ...string) (*unstructured.Unstructured, error) {
	raw, err := original.MarshalJSON()
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, json.Unmarshal([]byte(strings.NewReplacer(words...).Replace(string(raw))), o)
}
