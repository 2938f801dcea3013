package remediation

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/fair"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
)

const (
	// changeDelay is how long changes of owners are gathered, because one turn appends several facts.
	changeDelay = 100 * time.Millisecond
	// policyDelay is how long changes in a namespace are gathered, because each reconciliation of a
	// policy counts the whole namespace. limitsDelay is longer, because the limits count the whole
	// fleet.
	policyDelay, limitsDelay = 300 * time.Millisecond, time.Second
)

// EventSource notifies the controllers of changes in the log. Use NewEventSource.
type EventSource struct {
	Owners resource.Changes[remediator.Owner]

	actor              string
	started            atomic.Bool
	requests, policies resource.Changes[string] // namespace/name
	owners             resource.Changes[remediator.Owner]
	namespaces, limits resource.Changes[string]
}

// NewEventSource returns a source that is ready for Changed. actor is this daemon's name in the log.
func NewEventSource(actor string) *EventSource {
	f := &EventSource{actor: actor}
	f.Owners.Delay, f.owners.Delay, f.requests.Delay, f.policies.Delay = changeDelay, changeDelay, changeDelay, changeDelay
	f.namespaces.Delay, f.limits.Delay = policyDelay, limitsDelay
	return f
}

// start makes Changed notify the controllers from now on, and enqueues the pending owners. It need
// not enqueue other objects, because each controller reconciles all existing objects when it
// starts.
func (f *EventSource) start(pending func() []remediator.Owner) {
	f.started.Store(true)
	for _, owner := range pending() {
		f.Owners.Add(owner)
	}
}

// Changed notifies the controllers of a commit about an owner, once they have started. It requeues
// the owner only for commits of other processes, because a turn also performs what follows from its
// own commits. It does not block.
func (f *EventSource) Changed(c runner.Change) {
	if !f.started.Load() {
		return
	}
	if c.Actor != f.actor {
		f.Owners.Add(c.Owner)
	}
	for _, machine := range c.Machines {
		f.requests.Add(c.Owner.Namespace + "/" + machine)
	}
	for _, policy := range c.Policies {
		f.policies.Add(c.Owner.Namespace + "/" + policy)
	}
	f.owners.Add(c.Owner)
	f.limits.Add("")
}

// watch returns a source that watches a kind in a cache. For each changed object it enqueues what
// concerned returns, for an update both before and after it. If relevant is nil, it ignores updates
// that change no metadata (the generation is metadata).
func watch[T client.Object, R comparable](cached cache.Cache, kind T, relevant predicate.TypedPredicate[T], concerned func(context.Context, client.Object) []R) source.TypedSyncingSource[R] {
	if relevant == nil {
		relevant = updatedIf(func(T, T) bool { return false })
	}
	return source.TypedKind(cached, kind, handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, o T) []R { return concerned(ctx, o) }), relevant)
}

func itself(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// requestsIn returns requests for all objects of a kind in a namespace. Reading the cache fails
// only during shutdown.
func requestsIn(ctx context.Context, cached client.Reader, list client.ObjectList, namespace string) (all []reconcile.Request) {
	if cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if o, ok := o.(client.Object); ok {
			all = append(all, itself(ctx, o)...)
		}
		return nil
	})
	return all
}

func withoutUpdates[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false }}
}

// updatedIf returns a predicate that accepts an update if the metadata changed or if differs
// reports a change. Statuses are often written without a relevant change.
func updatedIf[T client.Object](differs func(before, after T) bool) predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
		return metadataDiffers(e.ObjectOld, e.ObjectNew) || differs(e.ObjectOld, e.ObjectNew)
	}}
}

func metadataDiffers(a, b client.Object) bool {
	return a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() || a.GetDeletionTimestamp().IsZero() != b.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(a.GetAnnotations(), b.GetAnnotations()) || !maps.Equal(a.GetLabels(), b.GetLabels()) ||
		!slices.EqualFunc(a.GetOwnerReferences(), b.GetOwnerReferences(), func(x, y metav1.OwnerReference) bool { return x.UID == y.UID })
}

func machineDiffers(a, b *clusterv1.Machine) bool {
	return a.Status.NodeRef != b.Status.NodeRef || a.Status.FailureDomain != b.Status.FailureDomain || a.Status.Phase != b.Status.Phase ||
		conditionsDiffer(a.Status.Conditions, b.Status.Conditions)
}

func ownerDiffers(a, b client.Object) bool {
	x, known := ownerkind.As(a)
	y, alike := ownerkind.As(b)
	return !known || !alike || x.ObservedGeneration() != y.ObservedGeneration() || conditionsDiffer(x.GetConditions(), y.GetConditions())
}

func clusterDiffers(a, b *clusterv1.Cluster) bool {
	return !equality.Semantic.DeepEqual(a.Status.FailureDomains, b.Status.FailureDomains)
}

// conditionsDiffer reports whether two lists of conditions differ. It ignores messages, because the
// counts and names in them change all the time.
func conditionsDiffer(a, b []metav1.Condition) bool {
	return !slices.EqualFunc(a, b, func(x, y metav1.Condition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.LastTransitionTime.Equal(&y.LastTransitionTime)
	})
}

const minRetryDelay, maxRetryDelay = 200 * time.Millisecond, time.Minute

func controllerOptions(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers, NewQueue: fair.NewRequestQueue,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay),
	}
}

type ownerReconciler struct {
	observer *observe.Observer
	runner   *runner.Runner
}

// setup requires synced caches. kinds are the owner kinds that the API server serves.
func (r *ownerReconciler) setup(mgr ctrl.Manager, feed *EventSource, kinds []ownerkind.Kind, concurrency int) error {
	watched := r.observer.Cache()
	b := builder.TypedControllerManagedBy[remediator.Owner](mgr).Named("remediation").
		WithOptions(controller.TypedOptions[remediator.Owner]{
			MaxConcurrentReconciles: concurrency, // the runner bounds the duration of each
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[remediator.Owner](minRetryDelay, maxRetryDelay),
			// The queue alternates between namespaces, so that one with many silent control planes
			// does not occupy all workers.
			NewQueue: func(name string, limiter workqueue.TypedRateLimiter[remediator.Owner]) workqueue.TypedRateLimitingInterface[remediator.Owner] {
				return fair.NewQueue(name, limiter, func(o remediator.Owner) string { return o.Namespace })
			},
		}).
		WatchesRawSource(resource.Source(&feed.Owners, func(_ context.Context, o remediator.Owner) []remediator.Owner { return []remediator.Owner{o} })).
		WatchesRawSource(watch(watched, &clusterv1.Machine{}, updatedIf(machineDiffers), r.concerned)).
		WatchesRawSource(watch(watched, &clusterv1.Cluster{}, updatedIf(clusterDiffers), r.concerned)).
		WatchesRawSource(watch(watched, &v1alpha1.SurgeRemediation{}, nil, r.concerned)).
		WatchesRawSource(watch(watched, &v1alpha1.RepairPolicy{}, nil, r.concerned)).
		WatchesRawSource(watch(mgr.GetCache(), &v1alpha1.RepairLimits{}, nil, r.concerned))
	for _, kind := range kinds {
		b = b.WatchesRawSource(watch(watched, kind.New(), updatedIf(ownerDiffers), r.concerned))
	}
	return b.Complete(r)
}

func (r *ownerReconciler) concerned(ctx context.Context, o client.Object) []remediator.Owner {
	owners, err := OwnersFor(ctx, r.observer.Cache(), o)
	if err != nil { // the caches are being shut down
		ctrl.LoggerFrom(ctx).Error(err, "finding the owners to reconcile")
	}
	return owners
}

// OwnersFor returns the owners whose facts an object affects. The object may be deleted.
//
//	Machine                     its owner
//	an owner that scute knows   itself, or the MachineDeployment that controls a MachineSet
//	Cluster                     the owners of all its machines
//	SurgeRemediation            the owner of the Machine of that name
//	RepairPolicy                the owners of all machines of its namespace, also of machines that it no longer selects
//	RepairLimits                the owners of all machines
func OwnersFor(ctx context.Context, cached client.Reader, of client.Object) ([]remediator.Owner, error) {
	in := []client.ListOption{client.InNamespace(of.GetNamespace()), client.UnsafeDisableDeepCopy}
	switch of.(type) {
	case *clusterv1.Cluster:
		in = append(in, client.MatchingLabels{clusterv1.ClusterNameLabel: of.GetName()})
	case *clusterv1.Machine, *v1alpha1.SurgeRemediation:
		machine := &clusterv1.Machine{}
		if is, ok := of.(*clusterv1.Machine); ok {
			machine = is
		} else if err := cached.Get(ctx, client.ObjectKeyFromObject(of), machine); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		owner, found, err := OwnerOf(ctx, cached, machine)
		if !found {
			return nil, err
		}
		return []remediator.Owner{owner}, nil
	case *v1alpha1.RepairPolicy, *v1alpha1.RepairLimits: // a RepairLimits has no namespace
	default:
		if o, ok := ownerkind.As(of); ok && o.Owner().Cluster != "" {
			return []remediator.Owner{o.Owner()}, nil
		}
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := cached.List(ctx, machines, in...); err != nil {
		return nil, err
	}
	seen := make(map[remediator.Owner]bool)
	for i := range machines.Items {
		owner, found, err := OwnerOf(ctx, cached, &machines.Items[i])
		if err != nil {
			return nil, err
		}
		if found {
			seen[owner] = true
		}
	}
	return slices.Collect(maps.Keys(seen)), nil
}

// OwnerOf returns the owner that replaces a machine. It returns false if nothing controls the
// machine, or if its MachineSet is gone, because then its MachineDeployment is gone too.
func OwnerOf(ctx context.Context, cached client.Reader, m *clusterv1.Machine) (owner remediator.Owner, found bool, err error) {
	by := metav1.GetControllerOfNoCopy(m)
	if by == nil {
		return owner, false, nil
	}
	owner = remediator.Owner{Kind: ownerkind.Of(by), Namespace: m.Namespace, Name: by.Name, UID: by.UID, Cluster: m.Spec.ClusterName}
	if owner.Kind != string(remediator.Set) {
		return owner, true, nil
	}
	set := &clusterv1.MachineSet{}
	if err := cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: by.Name}, set, client.UnsafeDisableDeepCopy); err != nil {
		return remediator.Owner{}, false, client.IgnoreNotFound(err)
	}
	above, _ := ownerkind.As(set)
	return above.Owner(), set.UID == by.UID, nil
}

// Reconcile performs one turn of an owner.
func (r *ownerReconciler) Reconcile(ctx context.Context, owner remediator.Owner) (reconcile.Result, error) {
	again, err := r.runner.Reconcile(ctx, owner)
	return reconcile.Result{RequeueAfter: again}, err
}
