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

// specimen is a cluster's objects of the kinds that are watched, as real controllers have left them: owners come first.
type specimen struct {
	name    string // of the cluster and its namespace; part of every object's name
	objects []*unstructured.Unstructured
}

// capture takes the objects of some kinds in a namespace, in which there is one cluster.
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

// captureControlPlane takes the cluster of a lane.
func captureControlPlane(ctx context.Context, l *lane) (*specimen, error) {
	s, err := capture(ctx, l.admin, l.name, clusterv1.GroupVersion.WithKind("Cluster"),
		controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"), clusterv1.GroupVersion.WithKind("Machine"))
	if err == nil && len(s.objects) != 2+replicas {
		err = fmt.Errorf("cluster %s has %d objects, want a Cluster, its control plane and %d machines", l.name, len(s.objects), replicas)
	}
	return s, err
}

// copies makes so many clusters like it in one namespace, where nobody acts on them.
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

// copy makes one: with its own names, and with UIDs as the API server gives them. change, if there is one, is made to each object.
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

// renamed is an object with other words in it, each followed by what replaces it.
func renamed(original *unstructured.Unstructured, words ...string) (*unstructured.Unstructured, error) {
	raw, err := original.MarshalJSON()
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, json.Unmarshal([]byte(strings.NewReplacer(words...).Replace(string(raw))), o)
}
