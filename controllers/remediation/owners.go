package remediation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/fair"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// minRetryDelay is the first delay after a failed reconciliation, maxRetryDelay the longest.
const minRetryDelay, maxRetryDelay = 200 * time.Millisecond, time.Minute

// Owners finds the owners that a changed object concerns, from caches only; *observe.Observer implements it.
type Owners interface {
	OwnersFor(ctx context.Context, o client.Object) ([]remediator.Owner, error)
}

// OwnerReconciler reconciles an owner of machines when something about it changed.
type OwnerReconciler struct {
	Cache  cache.Cache
	Owners Owners
	// ReconcileOwner observes an owner and acts on it. again is the delay before the next reconciliation if nothing changes.
	ReconcileOwner func(ctx context.Context, owner remediator.Owner) (again time.Duration, err error)
	// Concurrency is the number of owners reconciled in parallel.
	Concurrency int
	// Kinds are the kinds of owners that the API server serves.
	Kinds []ownerkind.Kind
	// Limits is the cache of the RepairLimits; nil if the kind is not served.
	Limits cache.Cache
	// Events notifies of owners with new events in the log.
	Events *EventSource
}

// fairByNamespace returns a queue that alternates between namespaces, so that many silent control planes in one do not occupy all workers.
func fairByNamespace(name string, limiter workqueue.TypedRateLimiter[remediator.Owner]) workqueue.TypedRateLimitingInterface[remediator.Owner] {
	return fair.NewQueue(name, limiter, func(o remediator.Owner) string { return o.Namespace })
}

// SetupWithManager registers the controller. The caches must be synced before.
func (r *OwnerReconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := builder.TypedControllerManagedBy[remediator.Owner](mgr).Named("remediation").
		WithOptions(controller.TypedOptions[remediator.Owner]{
			MaxConcurrentReconciles: r.Concurrency, // the runner limits the duration of each
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[remediator.Owner](minRetryDelay, maxRetryDelay), NewQueue: fairByNamespace,
		}).
		WatchesRawSource(resource.Source(&r.Events.owners, func(_ context.Context, o remediator.Owner) []remediator.Owner { return []remediator.Owner{o} })).
		WatchesRawSource(watchOwners(r, r.Cache, &clusterv1.Machine{}, machineDiffers)).
		WatchesRawSource(watchOwners(r, r.Cache, &clusterv1.Cluster{}, clusterDiffers)).
		WatchesRawSource(watchOwners(r, r.Cache, &v1alpha1.SurgeRemediation{}, neverDiffers)).
		WatchesRawSource(watchOwners(r, r.Cache, &v1alpha1.RepairPolicy{}, neverDiffers))
	for _, kind := range r.Kinds {
		b = b.WatchesRawSource(watchOwners(r, r.Cache, kind.New(), ownerDiffers))
	}
	if r.Limits != nil {
		b = b.WatchesRawSource(watchOwners(r, r.Limits, &v1alpha1.RepairLimits{}, neverDiffers))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up the owner controller: %w", err)
	}
	return nil
}

// watchOwners watches a kind in a cache, and queues the owners that a changed object concerns.
func watchOwners[T client.Object](r *OwnerReconciler, watched cache.Cache, kind T, differs func(before, after T) bool) source.TypedSyncingSource[remediator.Owner] {
	owners := func(ctx context.Context, o T) []remediator.Owner { // for both objects of an update, so the previous owner is included
		owners, err := r.Owners.OwnersFor(ctx, o)
		if err != nil { // the caches are being shut down
			ctrl.LoggerFrom(ctx).Error(err, "finding the owners to reconcile")
		}
		return owners
	}
	return source.TypedKind(watched, kind, handler.TypedEnqueueRequestsFromMapFunc(owners), updatedIf(differs))
}

// Reconcile reconciles one owner.
func (r *OwnerReconciler) Reconcile(ctx context.Context, owner remediator.Owner) (reconcile.Result, error) {
	again, err := r.ReconcileOwner(ctx, owner)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}
