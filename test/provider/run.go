package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are the options of the providers on one side.
type Options struct {
	Side  string
	Cloud *Cloud
	// Stop is how long the out-of-band reconciler takes to stop.
	Stop time.Duration
}

// Run starts both providers on the cluster of a configuration. They run until ctx ends, which closes done.
func Run(ctx context.Context, c *rest.Config, o Options) (done <-chan error, err error) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	m, err := ctrl.NewManager(c, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the providers of %s: %w", o.Side, err)
	}
	slow := &slow{Client: m.GetClient()}
	band := &outOfBand{Client: m.GetClient(), Options: o, working: make(map[string]time.Time)}
	mute := &mute{Client: m.GetClient()}
	for name, r := range map[string]struct {
		kind     string
		clusters bool // it also watches Clusters
		do       reconcile.Reconciler
	}{"slow": {SlowKind, true, slow}, "out-of-band": {SlowKind, false, band}, "mute": {MuteKind, false, mute}} {
		b := ctrl.NewControllerManagedBy(m).Named(name).For(empty(r.kind))
		if r.clusters {
			b = b.Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(below(m.GetClient(), r.kind)))
		}
		if err := b.Complete(r.do); err != nil {
			return nil, fmt.Errorf("preparing the controller %s: %w", name, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	return ended, nil
}

func empty(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of(kind))
	return u
}

// below returns a function that maps a Cluster to its objects of a kind.
func below(c client.Client, kind string) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) (requests []reconcile.Request) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of(kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(cluster.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()}); err != nil {
			return nil
		}
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}
