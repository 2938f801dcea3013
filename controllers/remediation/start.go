package remediation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/kube/guard"
	"scute.dev/remediator"
	"scute.dev/remediator/act"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
	"scute.dev/view"
)

const (
	// syncInterval is how long a step of the start waits for the caches, and the delay before the next step.
	syncInterval, installRetryInterval = 200 * time.Millisecond, 30 * time.Second
)

// Starter starts the remediator when the first RepairPolicy appears; until then it only watches
// that kind. The remediator keeps running without a policy, because remediations that a deleted
// policy started must still be cancelled. Set the exported fields before use.
type Starter struct {
	Manager manager.Manager
	Config  *rest.Config
	Guard   *guard.Guard
	// CheckLease returns why workload clusters must not be changed now, or nil.
	CheckLease  func() error
	Runner      *runner.Runner
	Events      *EventSource
	Reporter    *EventReporter
	Concurrency int
	// Cached is called with each cache, and lists of the kinds of scute in it.
	Cached func(cache client.Reader, lists ...client.ObjectList)

	// Reconcile has one worker, so these fields need no lock.
	open     bool
	observer *observe.Observer
	kinds    []ownerkind.Kind  // served by the API server
	limits   *limitsReconciler // publishes from the beginning
}

// Register registers the kinds that are read before the start.
func (r *Starter) Register() {
	r.Cached(r.Manager.GetCache(), &v1alpha1.RepairPolicyList{}, &v1alpha1.RepairLimitsList{})
}

// SetupWithManager adds the controllers of the start and of the RepairLimits. Call it after
// Register, when the view has everything that the log had at the start.
func (r *Starter) SetupWithManager() error {
	r.limits = &limitsReconciler{client: r.Manager.GetClient(), recorder: r.Manager.GetEventRecorder("scuted")}
	if err := r.limits.setup(r.Manager, r.Events); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(r.Manager).Named("remediator").
		For(&v1alpha1.RepairPolicy{}).
		WithOptions(controllerOptions(1)).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(reconcile.Request{}) // for owners that are due without a policy
			return nil
		})).
		Complete(r)
}

// Reconcile starts the remediator if it is needed and not running. It discovers Cluster API, waits
// for the caches, and starts the controllers. If a cache does not sync, for example without a
// permission, the controllers do not start, but the daemon keeps running.
func (r *Starter) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.open {
		return ctrl.Result{}, nil
	}
	p := &v1alpha1.RepairPolicy{}
	if req.Name == "" {
		if len(r.Runner.View.Pending()) == 0 {
			return ctrl.Result{}, nil
		}
	} else if err := r.Manager.GetClient().Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.observer == nil {
		missing, err := r.startCache(ctx)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("starting the remediator: %w", err)
		}
		if missing != "" && req.Name != "" {
			err = r.reportMissing(ctx, p, missing)
		}
		if missing != "" {
			return ctrl.Result{RequeueAfter: installRetryInterval}, err
		}
	}
	syncing, cancel := context.WithTimeout(ctx, syncInterval)
	defer cancel()
	if !r.observer.Cache().WaitForCacheSync(syncing) {
		return ctrl.Result{RequeueAfter: syncInterval}, nil
	}
	if err := r.startControllers(); err != nil {
		return ctrl.Result{}, fmt.Errorf("starting the remediator: %w", err)
	}
	r.open = true
	return ctrl.Result{}, nil
}

func (r *Starter) reportMissing(ctx context.Context, p *v1alpha1.RepairPolicy, missing string) error {
	after := p.DeepCopy()
	message := missing + ": scute checks again every " + view.Duration(installRetryInterval)
	after.Status.ObservedGeneration, after.Status.Message = p.Generation, message
	after.Status.Conditions = resource.Kstatus(p.Status.Conditions, p.Generation, "NotInstalled",
		resource.Value{Message: message}, resource.Value{}, resource.Value{True: true, Message: message})
	_, err := resource.Write(ctx, r.Manager.GetClient(), p, after)
	return err
}

// startCache starts the cache of the observer. If Cluster API is not installed, it returns what is
// missing.
func (r *Starter) startCache(ctx context.Context) (missing string, err error) {
	machines, err := resource.Serves(r.Manager.GetRESTMapper(), clusterv1.GroupVersion.WithKind("Machine"))
	if err != nil {
		return "", err
	}
	if !machines {
		return "Cluster API is not installed here, or too old: the API server has no Machine of " + clusterv1.GroupVersion.String(), nil
	}
	r.kinds = nil
	for _, kind := range ownerkind.All() {
		served, err := resource.Serves(r.Manager.GetRESTMapper(), kind.GroupVersionKind())
		if err != nil {
			return "", err
		}
		if served {
			r.kinds = append(r.kinds, kind)
		}
	}
	observer, err := observe.New(ctx, r.Config, r.Guard, r.CheckLease)
	if err != nil {
		return "", err
	}
	observer.Limits = r.Manager.GetClient()
	if err := r.Manager.Add(observer.Cache()); err != nil {
		return "", fmt.Errorf("starting the cache of machines: %w", err)
	}
	r.observer = observer
	return "", nil
}

func (r *Starter) startControllers() error {
	watched, live, recorder := r.observer.Cache(), r.observer.Client(), r.Manager.GetEventRecorder("scuted")
	r.Runner.Observer, r.Runner.Executor = r.observer, &act.Executor{Client: live, Etcd: r.observer}
	r.Cached(watched, &v1alpha1.SurgeRemediationList{}, &v1alpha1.SurgeRemediationTemplateList{})
	r.Events.start(r.Runner.View.Pending)
	r.limits.start(r.Events, func(ctx context.Context) (remediator.Fleet, error) {
		seen, err := r.observer.Fleet(ctx)
		if err != nil {
			return seen, err
		}
		return r.Runner.Fleet(seen), nil
	})
	owners := &ownerReconciler{observer: r.observer, runner: r.Runner}
	policies := &policyReconciler{cache: watched, live: live, recorder: recorder, view: r.Runner.View, totals: r.Runner.Totals}
	requests := &requestReconciler{cache: watched, live: live, recorder: recorder, view: r.Runner.View}
	return errors.Join(
		policies.setup(r.Manager, watched, r.Events, r.kinds),
		requests.setup(r.Manager, watched, r.Events),
		owners.setup(r.Manager, r.Events, r.kinds, r.Concurrency),
		r.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
			r.Reporter.Run(ctx, live)
			return nil
		})),
	)
}
