package observe

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/guard"
	"scute.dev/kube/tenant"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// callTimeout bounds one request to the management cluster.
const callTimeout = 10 * time.Second

// Observer reads the facts of owners of machines. Its methods may be called concurrently once its cache runs and is synced.
type Observer struct {
	cache   cache.Cache
	live    client.Client // does not cache
	tenants *tenant.Dialer
	tested  testedProviders
	census  census
	nodes   nodeCache
	now     func() time.Time

	// Limits reads the RepairLimits; nil if the kind is not served. It is set before use.
	Limits client.Reader
}

// New returns an Observer with a cache that the caller starts: Cache().Start. The API server must serve Machine in v1beta2. Workload clusters are
// reached at private addresses and at the addresses that the guard allows. held returns why nothing may be changed in workload clusters at the
// moment; nil always allows it.
func New(ctx context.Context, config *rest.Config, g *guard.Guard, held func() error) (*Observer, error) {
	connection, err := connect(config)
	if err != nil {
		return nil, fmt.Errorf("setting up the observer of machines: %w", err)
	}
	live, err := client.New(connection.config, client.Options{HTTPClient: connection.client, Scheme: connection.scheme, Mapper: connection.mapper})
	if err != nil {
		return nil, fmt.Errorf("setting up the observer of machines: %w", err)
	}
	c, err := connection.cache(ctx)
	if err != nil {
		return nil, fmt.Errorf("setting up the observer of machines: %w", err)
	}
	tenants := tenant.New(g.AllowPrivate())
	tenants.CheckWritesAllowed = held
	return &Observer{cache: c, live: live, tenants: tenants, now: time.Now}, nil
}

// Cache returns the cache that Observe reads. Controllers watch it too, so they add no other watch. It stores only what facts need (see strip.go): never
// write an object that was read from it.
func (o *Observer) Cache() cache.Cache { return o.cache }

// Observe returns an owner's facts. An owner that is gone is not Found, without an error. made are the objects of escalation steps recorded in the log.
func (o *Observer) Observe(ctx context.Context, owner remediator.Owner, made remediator.CreatedObjects) (*remediator.Facts, error) {
	kind, _ := ownerkind.Named(owner.Kind)
	l := &observation{observer: o, kind: kind, created: made, facts: &remediator.Facts{Owner: remediator.OwnerFacts{Owner: owner}}}
	for _, step := range []func(context.Context) error{l.machines, l.cluster, l.owner, l.policy, l.notices, l.healthChecks, l.fleet, l.requests, l.nodes, l.details, l.stepObjects} {
		if err := step(ctx); err != nil {
			return nil, err // each step wraps its error; the caller adds the owner
		}
	}
	return l.facts, nil
}
