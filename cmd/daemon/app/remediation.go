package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/remediation"
	"scute.dev/kube/guard"
	moves "scute.dev/mover/runner"
	"scute.dev/remediator"
	"scute.dev/remediator/act"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
)

// lazyRemediator is the remediator. It starts when a RepairPolicy requires it.
type lazyRemediator struct {
	runner      *runner.Runner
	events      *remediation.EventSource
	reporter    *remediation.EventReporter
	manager     manager.Manager
	config      *rest.Config
	guard       *guard.Guard
	checkLease  func() error
	concurrency int
	resources   *resourceCounter

	// These fields are set by start, in this order.
	observer *observe.Observer
	live     client.Client
	kinds    []ownerkind.Kind // the kinds of owners that the API server serves
	// limits are published from the beginning, before start. It is nil if the API server does not serve RepairLimits.
	limits *remediation.Limits
}

func newLazyRemediator(o Options, config *rest.Config, held *tenure, g *guard.Guard, log aggregate.Log, incarnation string, v *views, caughtUp func(ctx context.Context, seq uint64) error, logger *slog.Logger) *lazyRemediator {
	config = rest.CopyConfig(config)
	config.UserAgent = "scute/remediator"
	reporter := &remediation.EventReporter{LogID: v.Remediations.LogID, Instance: incarnation, Logger: logger}
	v.Remediations.Report, v.Remediations.ReportSince = reporter.Report, reporter.Since()
	return &lazyRemediator{
		reporter: reporter,
		runner: &runner.Runner{
			Log: log, Incarnation: incarnation, Logger: logger, View: v.Remediations,
			MoveOf: func(ctx context.Context, seq uint64, namespace, cluster string) (string, error) {
				if err := caughtUp(ctx, seq); err != nil {
					return "", err
				}
				return moveOf(v.Moves, namespace, cluster), nil
			},
		},
		config: config, guard: g, checkLease: held.check, concurrency: o.RemediationConcurrency,
	}
}

// register registers the kinds that are read before the start.
func (r *lazyRemediator) register(mgr manager.Manager, feed *remediation.EventSource) error {
	r.manager, r.events = mgr, feed
	r.resources.add(mgr.GetCache(), &v1alpha1.RepairPolicyList{})
	limited, err := serves(mgr.GetRESTMapper(), v1alpha1.GroupVersion().WithKind("RepairLimits"))
	if err != nil {
		return err
	}
	if limited {
		r.resources.add(mgr.GetCache(), &v1alpha1.RepairLimitsList{})
		r.limits = &remediation.Limits{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("scuted")}
	} else {
		r.runner.Logger.Warn("using the default limits for the fleet", "because", "the API server has no kind RepairLimits: install the CRDs of this version, and restart scuted")
	}
	return nil
}

// await prepares the start, which a RepairPolicy triggers. The gate must be open.
func (r *lazyRemediator) await(context.Context) error {
	if r.limits != nil {
		if err := r.limits.SetupWithManager(r.manager, r.events); err != nil {
			return err
		}
	}
	gate := &remediation.Gate{Client: r.manager.GetClient(), Due: r.runner.View.Pending, Start: r.start}
	return gate.SetupWithManager(r.manager)
}

// start continues the start as far as possible: it discovers Cluster API, waits for the caches, and starts the controllers. A cache that does not
// sync, for example for lack of a permission, only prevents the controllers from starting.
func (r *lazyRemediator) start(ctx context.Context) (done bool, missing string, err error) {
	if r.observer == nil {
		if missing, err := r.startCaches(ctx); missing != "" || err != nil {
			return false, missing, err
		}
	}
	synced, err := r.synced(ctx)
	if err != nil || !synced {
		return false, "", err
	}
	if err := r.startControllers(); err != nil {
		return false, "", err
	}
	return true, "", nil
}

// startCaches starts the caches if Cluster API is installed. Otherwise it returns what is missing.
func (r *lazyRemediator) startCaches(ctx context.Context) (missing string, err error) {
	machines, err := serves(r.manager.GetRESTMapper(), clusterv1.GroupVersion.WithKind("Machine"))
	if err != nil {
		return "", err
	}
	if !machines {
		return "Cluster API is not installed here, or too old: the API server has no Machine of " + clusterv1.GroupVersion.String(), nil
	}
	r.kinds = nil
	for _, kind := range ownerkind.All() {
		served, err := serves(r.manager.GetRESTMapper(), kind.GroupVersionKind())
		if err != nil {
			return "", err
		}
		if served {
			r.kinds = append(r.kinds, kind)
		}
	}
	if r.live == nil {
		scheme, err := newScheme()
		if err != nil {
			return "", err
		}
		config := rest.CopyConfig(r.config)
		config.QPS = -1 // the server's priority and fairness limits the requests
		if r.live, err = client.New(config, client.Options{Scheme: scheme, Mapper: r.manager.GetRESTMapper()}); err != nil {
			return "", fmt.Errorf("preparing the remediator's client: %w", err)
		}
	}
	observer, err := observe.New(ctx, r.config, r.guard, r.checkLease)
	if err != nil {
		return "", err
	}
	if r.limits != nil {
		observer.Limits = r.manager.GetClient()
	}
	if err := r.manager.Add(observer.Cache()); err != nil {
		return "", fmt.Errorf("starting the cache of machines: %w", err)
	}
	r.observer = observer
	return "", nil
}

// serves reports whether the API server serves a kind.
func serves(mapper meta.RESTMapper, kind schema.GroupVersionKind) (bool, error) {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking up the kind %s: %w", kind.Kind, err)
	}
	return true, nil
}

// synced reports whether the caches of all watched kinds are synced.
func (r *lazyRemediator) synced(ctx context.Context) (bool, error) {
	kinds := []client.Object{
		&clusterv1.Machine{}, &clusterv1.Cluster{}, &clusterv1.MachineHealthCheck{},
		&v1alpha1.RepairPolicy{}, &v1alpha1.SurgeRemediation{}, &v1alpha1.SurgeRemediationTemplate{},
	}
	for _, kind := range r.kinds {
		kinds = append(kinds, kind.New())
	}
	all := true
	for _, kind := range kinds {
		informer, err := r.observer.Cache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return false, fmt.Errorf("watching %T: %w", kind, err)
		}
		all = all && informer.HasSynced()
	}
	return all, nil
}

// startControllers starts the controllers.
func (r *lazyRemediator) startControllers() error {
	watched := r.observer.Cache()
	r.runner.Observer, r.runner.Executor = r.observer, &act.Executor{Client: r.live, Etcd: r.observer}
	r.resources.add(watched, &v1alpha1.SurgeRemediationList{}, &v1alpha1.SurgeRemediationTemplateList{})
	if r.limits != nil {
		r.limits.SetFleet(r.events, r.fleet)
	}
	recorder := r.manager.GetEventRecorder("scuted")
	policies := &remediation.Policies{Cache: watched, Live: r.live, Recorder: recorder, View: r.runner.View, Totals: r.runner.Totals}
	requests := &remediation.Requests{Cache: watched, Live: r.live, Recorder: recorder, View: r.runner.View, OwnerOf: r.observer.OwnerOf}
	turns := &remediation.OwnerReconciler{
		Cache: watched, Owners: r.observer, ReconcileOwner: r.runner.Reconcile, Concurrency: r.concurrency, Kinds: r.kinds, Events: r.events,
		Limits: r.limitsCache(),
	}
	return errors.Join(
		policies.SetupWithManager(r.manager, watched, r.events, r.kinds),
		requests.SetupWithManager(r.manager, watched, r.events),
		turns.SetupWithManager(r.manager),
		r.manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
			r.reporter.Run(ctx, r.live)
			return nil
		})),
	)
}

// fleet returns what all policies have in progress, and the limits for it.
func (r *lazyRemediator) fleet(ctx context.Context) (remediator.Fleet, error) {
	seen, err := r.observer.Fleet(ctx)
	if err != nil {
		return seen, err
	}
	return r.runner.Fleet(seen), nil
}

// limitsCache returns the cache of the RepairLimits, or nil if the API server does not serve the kind.
func (r *lazyRemediator) limitsCache() cache.Cache {
	if r.limits == nil {
		return nil
	}
	return r.manager.GetCache()
}

// moveOf returns the ID of a cluster's move in progress, the first one, or "". It ignores dry runs.
func moveOf(v *moves.Moves, namespace, cluster string) (first string) {
	for id, e := range v.All() {
		s := &e.State.Spec
		of := s.Namespace == namespace && (s.All || slices.Contains(s.Clusters, cluster))
		if of && !s.DryRun && !e.State.Finished() && (first == "" || id < first) {
			first = id
		}
	}
	return first
}

// newScheme returns a scheme with the kinds that the daemon reads, writes, or records events about.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme), ownerkind.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}
