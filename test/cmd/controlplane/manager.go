package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

// The defaults of kube-controller-manager (k8s.io/kube-controller-manager/config/v1alpha1).
const (
	collectorWorkers = 20
	collectorSync    = 30 * time.Second
	namespaceWorkers = 10
	namespaceSync    = 5 * time.Minute
	resync           = 12 * time.Hour
)

// newManagerCommand returns a kube-controller-manager that runs only the garbage collector and the namespace
// controller. It ignores all flags except --kubeconfig.
func newManagerCommand() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use: "kube-controller-manager", SilenceUsage: true,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(*cobra.Command, []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			return runControllers(genericapiserver.SetupSignalContext(), config)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the kubeconfig file of kube-apiserver")
	return cmd
}

// runControllers runs both controllers until ctx ends, set up as in cmd/kube-controller-manager/app/core.go.
func runControllers(ctx context.Context, config *rest.Config) error {
	config.QPS = -1 // kube-apiserver's priority and fairness is the limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the client for metadata: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	shared := informers.NewSharedInformerFactory(client, resync)
	metadataOnly := metadatainformer.NewSharedInformerFactory(metadataClient, resync)
	started := make(chan struct{})

	graph := garbagecollector.NewDependencyGraphBuilder(ctx, metadataClient, mapper, map[schema.GroupResource]struct{}{
		corev1.SchemeGroupVersion.WithResource("events").GroupResource(): {},
		{Group: "events.k8s.io", Resource: "events"}:                     {},
	}, informerfactory.NewInformerFactory(shared, metadataOnly), started)
	collector, err := garbagecollector.NewComposedGarbageCollector(ctx, client, metadataClient, mapper, graph)
	if err != nil {
		return fmt.Errorf("creating the garbage collector: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		shared.Core().V1().Namespaces(), namespaceSync, corev1.FinalizerKubernetes)

	shared.Start(ctx.Done())
	metadataOnly.Start(ctx.Done())
	close(started)
	go namespaces.Run(ctx, namespaceWorkers)
	go collector.Sync(ctx, client.Discovery(), collectorSync)
	collector.Run(ctx, collectorWorkers, collectorSync)
	return nil
}
