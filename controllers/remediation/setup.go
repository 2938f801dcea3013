package remediation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/fair"
	"scute.dev/remediator/ownerkind"
)

// gatherDelay is how long changes in a namespace are collected before its policies are reconciled, because each reconciliation counts the whole namespace.
const gatherDelay = 300 * time.Millisecond

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// SetupWithManager registers the controller of policies. The API server must serve the kinds of owners.
func (r *Policies) SetupWithManager(mgr ctrl.Manager, watched cache.Cache, feed *EventSource, kinds []ownerkind.Kind) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("repairpolicy").
		WithOptions(controllerOptions(1)).
		WatchesRawSource(namespaceSource(&feed.policies, watched, &v1alpha1.RepairPolicyList{})).
		WatchesRawSource(watchPolicies(watched, &v1alpha1.RepairPolicy{}, neverDiffers)).
		WatchesRawSource(watchPolicies(watched, &v1alpha1.SurgeRemediationTemplate{}, neverDiffers)).
		WatchesRawSource(watchPolicies(watched, &clusterv1.MachineHealthCheck{}, neverDiffers)).
		WatchesRawSource(watchPolicies(watched, &clusterv1.Cluster{}, neverDiffers)).
		// Machines are only counted.
		WatchesRawSource(watchPolicies(watched, &clusterv1.Machine{}, nil))
	for _, kind := range kinds {
		if kind.Name.IsControlPlane() {
			b = b.WatchesRawSource(watchPolicies(watched, kind.New(), neverDiffers))
		}
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up the RepairPolicy controller: %w", err)
	}
	return nil
}

// watchPolicies watches a kind, and queues the policies of the namespace in which an object changed. If differs is nil, updates queue nothing.
func watchPolicies[T client.Object](watched cache.Cache, kind T, differs func(before, after T) bool) source.TypedSyncingSource[reconcile.Request] {
	queue := func(ctx context.Context, q requestQueue, o T) {
		if _, policy := client.Object(o).(*v1alpha1.RepairPolicy); policy {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}) // also a deleted one
		}
		for _, request := range requestsIn(ctx, watched, &v1alpha1.RepairPolicyList{}, o.GetNamespace()) {
			q.AddAfter(request, gatherDelay) // when the changes have been gathered
		}
	}
	only := updatedIf(differs)
	if differs == nil {
		only = predicate.TypedFuncs[T]{UpdateFunc: func(event.TypedUpdateEvent[T]) bool { return false }}
	}
	return source.Kind(watched, kind, handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q requestQueue) { queue(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q requestQueue) { queue(ctx, q, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q requestQueue) { queue(ctx, q, e.Object) },
	}, []predicate.TypedPredicate[T]{only}...)
}

// SetupWithManager registers the controller of requests.
func (r *Requests) SetupWithManager(mgr ctrl.Manager, watched cache.Cache, feed *EventSource) error {
	all := func(ctx context.Context, o client.Object) []reconcile.Request {
		return requestsIn(ctx, watched, &v1alpha1.SurgeRemediationList{}, o.GetNamespace())
	}
	named := func(q requestQueue, o client.Object) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("surgeremediation").
		WithOptions(controllerOptions(2)).
		WatchesRawSource(namespaceSource(&feed.requests, watched, &v1alpha1.SurgeRemediationList{})).
		WatchesRawSource(source.Kind(watched, &v1alpha1.SurgeRemediation{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.SurgeRemediation]{}, updatedIf(neverDiffers[*v1alpha1.SurgeRemediation]))).
		// A request is released when the Machine with its name was deleted. A request that was created before its Machine waits for the Machine.
		WatchesRawSource(source.Kind(watched, &clusterv1.Machine{}, handler.TypedFuncs[*clusterv1.Machine, reconcile.Request]{
			CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*clusterv1.Machine], q requestQueue) {
				named(q, e.Object)
			},
			DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*clusterv1.Machine], q requestQueue) {
				named(q, e.Object)
			},
		})).
		WatchesRawSource(source.Kind(watched, &v1alpha1.RepairPolicy{}, handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, p *v1alpha1.RepairPolicy) []reconcile.Request {
			return all(ctx, p)
		}), updatedIf(neverDiffers[*v1alpha1.RepairPolicy]))).
		WatchesRawSource(source.Kind(watched, &clusterv1.Cluster{}, handler.TypedFuncs[*clusterv1.Cluster, reconcile.Request]{
			UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*clusterv1.Cluster], q requestQueue) {
				for _, request := range all(ctx, e.ObjectNew) {
					q.Add(request)
				}
			},
		}, updatedIf(neverDiffers[*clusterv1.Cluster]))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the SurgeRemediation controller: %w", err)
	}
	return nil
}

// controllerOptions returns options that bound the delay between retries.
func controllerOptions(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers, NewQueue: fair.NewRequestQueue,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay),
	}
}
