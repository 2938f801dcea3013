package testbed

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Workload is a workload cluster, whichever side manages it.
type Workload struct {
	bed             *Bed
	Namespace, Name string
}

// Workload returns a handle for the workload cluster with that name. It need not exist yet.
func (b *Bed) Workload(namespace, name string) *Workload {
	return &Workload{bed: b, Namespace: namespace, Name: name}
}

// Config returns the administrator's configuration of the workload cluster's API, from its kubeconfig Secret on the
// first side that has one.
func (w *Workload) Config(ctx context.Context) (*rest.Config, error) {
	var errs []error
	for _, s := range w.bed.sides {
		secret := &corev1.Secret{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name + "-kubeconfig"}, secret); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
		if err != nil {
			return nil, fmt.Errorf("reading the kubeconfig of %s/%s: %w", w.Namespace, w.Name, err)
		}
		config.QPS = -1
		return config, nil
	}
	return nil, fmt.Errorf("finding the kubeconfig of %s/%s: %w", w.Namespace, w.Name, errors.Join(errs...))
}

// Client returns an administrator's client of the workload cluster's API. The cloud's journal records its writes as
// made by cloud.WorkloadAPI.
func (w *Workload) Client(ctx context.Context) (client.Client, error) {
	config, err := w.Config(ctx)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s/%s: %w", w.Namespace, w.Name, err)
	}
	return c, nil
}

// Nodes returns the names of the nodes, those of the control plane first.
func (w *Workload) Nodes(ctx context.Context) ([]string, error) {
	c, err := w.Client(ctx)
	if err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the nodes of %s/%s: %w", w.Namespace, w.Name, err)
	}
	var controlPlane, workers []string
	for _, node := range list.Items {
		if _, ok := node.Labels["node-role.kubernetes.io/control-plane"]; ok {
			controlPlane = append(controlPlane, node.Name)
		} else {
			workers = append(workers, node.Name)
		}
	}
	return append(controlPlane, workers...), nil
}
