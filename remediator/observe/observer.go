package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/guard"
	"scute.dev/kube/tenant"
	"scute.dev/remediator/ownerkind"
)

const callTimeout = 10 * time.Second

// Observer reads the facts of owners of machines. Once its cache is synced, its methods may be
// called concurrently.
type Observer struct {
	cache   cache.Cache
	live    client.Client // not cached
	tenants *tenant.Dialer
	tested  testedProviders
	census  census
	nodes   *utilcache.Expiring // by the UID of the owner: nodesOf
	now     func() time.Time

	// Limits reads the RepairLimits; nil if there are none. Set it before use.
	Limits client.Reader
}

// New returns an Observer, whose cache the caller must start. The API server must serve Machine in
// v1beta2. The Observer dials workload clusters at private addresses and at addresses that g
// allows. held returns why workload clusters must not be changed now, or nil if they may be. If
// held itself is nil, they may always be changed.
func New(ctx context.Context, config *rest.Config, g *guard.Guard, held func() error) (*Observer, error) {
	c, live, err := connect(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("setting up the observer of machines: %w", err)
	}
	tenants := tenant.New(g.AllowPrivate())
	tenants.CheckWritesAllowed = held
	return &Observer{cache: c, live: live, tenants: tenants, nodes: utilcache.NewExpiring(), now: time.Now}, nil
}

// Cache returns the cache that Observe reads. Controllers share its watches. Its objects are
// stripped (strip.go), so they must not be written back.
func (o *Observer) Cache() cache.Cache { return o.cache }

// Client returns the client that does not cache. The executor uses it too.
func (o *Observer) Client() client.Client { return o.live }

// byController is the index of Machines and MachineSets by the UID of their controller.
const byController = "controller"

// connect returns a cache that watches only watchedKinds, and a client that does not cache. A read
// of another kind from the cache fails instead of starting a watch, for example of all Secrets. A
// kind that is not served is not watched, for example the kubeadm control plane without its
// provider.
func connect(ctx context.Context, config *rest.Config) (cache.Cache, client.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no limit in the client, because the API server applies priority and fairness
	config.UserAgent = "scute/remediator"
	config.WarningHandler = rest.NoWarnings{} // warnings concern kinds of other projects
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), ownerkind.AddToScheme(scheme),
		clusterctlv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme))
	if err != nil {
		return nil, nil, err
	}
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, err
	}
	watched := watchedKinds()
	made, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: live.RESTMapper(), ReaderFailOnMissingInformer: true, ByObject: watched})
	if err != nil {
		return nil, nil, err
	}
	for kind := range watched {
		if _, err := made.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil && !meta.IsNoMatchError(err) {
			return nil, nil, fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	for _, kind := range []client.Object{&clusterv1.Machine{}, &clusterv1.MachineSet{}} {
		if err := made.IndexField(ctx, kind, byController, controllerUID); err != nil {
			return nil, nil, fmt.Errorf("indexing %T: %w", kind, err)
		}
	}
	return made, live, nil
}

func watchedKinds() map[client.Object]cache.ByObject {
	kinds := map[client.Object]cache.ByObject{
		&clusterv1.Machine{}:            {Transform: stripped(stripMachine)},
		&clusterv1.Cluster{}:            {Transform: stripped(stripCluster)},
		&clusterv1.MachineHealthCheck{}: {Transform: stripped(stripHealthCheck)},

		&v1alpha1.RepairPolicy{}:             {Transform: stripped(func(p *v1alpha1.RepairPolicy) { v1alpha1.Slim(p) })},
		&v1alpha1.SurgeRemediation{}:         {Transform: stripped(func(r *v1alpha1.SurgeRemediation) { v1alpha1.Slim(r) })},
		&v1alpha1.SurgeRemediationTemplate{}: {Transform: stripped(func(t *v1alpha1.SurgeRemediationTemplate) { v1alpha1.Slim(t) })},
	}
	for _, kind := range ownerkind.All() {
		kinds[kind.New()] = cache.ByObject{Transform: stripped(stripOwner)}
	}
	return kinds
}

func controllerUID(o client.Object) []string {
	if by := metav1.GetControllerOfNoCopy(o); by != nil {
		return []string{string(by.UID)}
	}
	return nil
}

// absent reports whether an error of the cache means that the object does not exist, or that its
// kind is not watched because it is not served.
func absent(err error) bool {
	return apierrors.IsNotFound(err) || uncached(err)
}

func uncached(err error) bool {
	var missing *cache.ErrResourceNotCached
	return errors.As(err, &missing)
}
