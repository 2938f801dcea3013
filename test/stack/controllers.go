package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"scute.dev/test/cloud"
)

// Options are the options of the controllers of one management cluster.
type Options struct {
	Name     string // author of their writes to the cloud
	Config   *rest.Config
	Cloud    *cloud.Cloud
	Webhooks Webhooks
	Log      logr.Logger
	// RateLimited keeps Cluster API's feature gate ReconcilerRateLimiting enabled, as it is by default: an object is
	// reconciled at most once per second. Feature gates are process-wide: the last start sets them.
	RateLimited bool
}

// Controllers are all running controllers and webhooks of one management cluster.
//
// The four providers share one controller-runtime manager and its cache. As separate programs they would need four
// times the memory and watches, and behave the same.
type Controllers struct {
	cancel   context.CancelFunc
	clusters connections
	done     chan struct{}
	err      error // result of the run; valid after done is closed
}

// connections are the connections of Cluster API's ClusterCache to workload clusters, with methods that its interface
// does not have.
type connections interface {
	clustercache.ClusterCache
	// Shutdown stops the watches, which outlive the manager.
	Shutdown()
	SetConnectionCreationRetryInterval(time.Duration)
}

const (
	// stopTimeout bounds how long reconciles in flight may continue.
	stopTimeout = 20 * time.Second
	// readyTimeout bounds the start. It takes 2 s on an idle machine, and much longer on a busy one.
	readyTimeout = 3 * time.Minute
	// connectionRetryInterval is the pause between two attempts to connect to a workload cluster.
	connectionRetryInterval = time.Second
)

// Start starts the controllers and returns when their caches are filled and their webhooks answer.
func Start(ctx context.Context, opts Options) (*Controllers, error) {
	gates := map[string]bool{string(feature.ClusterTopology): true, string(feature.ReconcilerRateLimiting): opts.RateLimited}
	if err := feature.MutableGates.SetFromMap(gates); err != nil {
		return nil, fmt.Errorf("starting the controllers of %q: %w", opts.Name, err)
	}
	manager, err := newManager(opts)
	if err != nil {
		return nil, fmt.Errorf("starting the controllers of %q: %w", opts.Name, err)
	}
	running, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), opts.Log))
	clusters, err := setup(running, manager, opts)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting the controllers of %q: %w", opts.Name, err)
	}
	c := &Controllers{cancel: cancel, clusters: clusters, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = manager.Start(running)
	}()
	if err := c.ready(ctx, manager); err != nil {
		return nil, fmt.Errorf("starting the controllers of %q: %w", opts.Name, errors.Join(err, c.Stop()))
	}
	return c, nil
}

// Stop stops the controllers like a terminated process: at once, except for reconciles in flight. The webhooks stop
// too, so the API server then refuses writes to Cluster API objects. Reconciles that exceed their time limit cannot
// write any more, because their context has ended. In a pod the kubelet would kill them.
func (c *Controllers) Stop() error {
	c.cancel()
	select {
	case <-c.done:
		c.clusters.Shutdown()
		if errors.Is(c.err, context.DeadlineExceeded) {
			return nil
		}
		return c.err
	case <-time.After(2 * stopTimeout):
		return fmt.Errorf("stopping controllers: still running after %s", 2*stopTimeout)
	}
}

func (c *Controllers) ready(ctx context.Context, manager ctrl.Manager) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return errors.New("waiting for the caches: not filled in time")
	}
	serving := manager.GetWebhookServer().StartedChecker()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := serving(nil)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.done:
			return fmt.Errorf("waiting for the webhooks: the controllers ended: %w", c.err)
		case <-ctx.Done():
			return fmt.Errorf("waiting for the webhooks: %w", err)
		}
	}
}

func newManager(opts Options) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	ofClusters, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	shared, graceful := true, stopTimeout
	return ctrl.NewManager(opts.Config, ctrl.Options{
		Scheme: scheme,
		Logger: opts.Log,
		Controller: config.Controller{
			SkipNameValidation: &shared, // the other sides run controllers with the same names in this process
			UsePriorityQueue:   new(feature.Gates.Enabled(feature.PriorityQueue)),
		},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.NewSelector().Add(*ofClusters)},
		}},
		Client:                  client.Options{Cache: uncached(true)},
		Metrics:                 server.Options{BindAddress: "0"},
		GracefulShutdownTimeout: &graceful,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: "127.0.0.1", Port: opts.Webhooks.Port, CertDir: opts.Webhooks.CertDir,
		}),
	})
}

// uncached returns the cache options that all providers set: Secrets and ConfigMaps are read from the API server.
func uncached(unstructured bool) *client.CacheOptions {
	return &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}, Unstructured: unstructured}
}

func setup(ctx context.Context, manager ctrl.Manager, opts Options) (connections, error) {
	if err := index.AddDefaultIndexes(ctx, manager); err != nil {
		return nil, err
	}
	secrets, err := client.New(manager.GetConfig(), client.Options{
		HTTPClient: manager.GetHTTPClient(), Cache: &client.CacheOptions{Reader: manager.GetCache()},
	})
	if err != nil {
		return nil, err
	}
	clusters, err := connect(ctx, manager, secrets, opts.Name)
	if err != nil {
		return nil, err
	}
	for _, set := range []func(context.Context, ctrl.Manager, dependencies) error{
		setupCore, setupBootstrap, setupControlPlane, setupInfrastructure, setupWebhooks,
	} {
		if err := set(ctx, manager, dependencies{clusters: clusters, secrets: secrets, cloud: opts.Cloud, name: opts.Name}); err != nil {
			return nil, err
		}
	}
	return clusters, nil
}

// connect sets up the connections to workload clusters.
func connect(ctx context.Context, manager ctrl.Manager, secrets client.Client, name string) (connections, error) {
	cache, err := clustercache.SetupWithManager(ctx, manager, clustercache.Options{
		SecretClient: secrets,
		Cache:        clustercache.CacheOptions{Indexes: []clustercache.CacheOptionsIndex{clustercache.NodeProviderIDIndex}},
		Client: clustercache.ClientOptions{
			QPS: 100, Burst: 200, UserAgent: name,
			// The kinds that at least one provider does not cache.
			Cache: clustercache.ClientCacheOptions{DisableFor: []client.Object{
				&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Pod{}, &appsv1.Deployment{}, &appsv1.DaemonSet{},
				&storagev1.VolumeAttachment{}, &corev1.PersistentVolume{},
			}},
		},
	}, workers)
	if err != nil {
		return nil, err
	}
	clusters, ok := cache.(connections)
	if !ok {
		return nil, fmt.Errorf("the ClusterCache (%T) of this version of Cluster API cannot be shut down", cache)
	}
	// The first attempt always fails, because a new control plane does not listen yet. By default the second follows 30
	// s later.
	clusters.SetConnectionCreationRetryInterval(connectionRetryInterval)
	return clusters, nil
}

// workers is the concurrency of every controller. It suffices for the clusters of a test bed.
var workers = controller.Options{MaxConcurrentReconciles: 10}

// dependencies are shared by the reconcilers.
type dependencies struct {
	clusters clustercache.ClusterCache
	secrets  client.Client
	cloud    *cloud.Cloud
	name     string
}
