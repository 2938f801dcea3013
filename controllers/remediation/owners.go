package remediation

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/fair"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
)

// ownerReconciler reconciles an owner of machines when something about it changed.
type ownerReconciler struct {
	observer *observe.Observer
	runner   *runner.Runner
	limits   cache.Cache // the cache of the RepairLimits; nil if the kind is not served
}

// fairByNamespace returns a queue that alternates between namespaces, so that many silent control planes in one do not occupy all workers.
func fairByNamespace(name string, limiter workqueue.TypedRateLimiter[remediator.Owner]) workqueue.TypedRateLimitingInterface[remediator.Owner] {
	return fair.NewQueue(name, limiter, func(o remediator.Owner) string { return o.Namespace })
}

// setup registers the controller. kinds are the kinds of owners that the API server serves. The caches must be synced before.
func (r *ownerReconciler) setup(mgr ctrl.Manager, feed *EventSource, kinds []ownerkind.Kind, concurrency int) error {
	watched := r.observer.Cache()
	b := builder.TypedControllerManagedBy[remediator.Owner](mgr).Named("remediation").
		WithOptions(controller.TypedOptions[remediator.Owner]{
			MaxConcurrentReconciles: concurrency, // the runner limits the duration of each
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[remediator.Owner](minRetryDelay, maxRetryDelay), NewQueue: fairByNamespace,
		}).
		WatchesRawSource(resource.Source(&feed.Owners, func(_ context.Context, o remediator.Owner) []remediator.Owner { return []remediator.Owner{o} })).
		WatchesRawSource(watch(watched, &clusterv1.Machine{}, updatedIf(machineDiffers), r.concerned)).
		WatchesRawSource(watch(watched, &clusterv1.Cluster{}, updatedIf(clusterDiffers), r.concerned)).
		WatchesRawSource(watch(watched, &v1alpha1.SurgeRemediation{}, updatedIf[*v1alpha1.SurgeRemediation](nil), r.concerned)).
		WatchesRawSource(watch(watched, &v1alpha1.RepairPolicy{}, updatedIf[*v1alpha1.RepairPolicy](nil), r.concerned))
	for _, kind := range kinds {
		b = b.WatchesRawSource(watch(watched, kind.New(), updatedIf(ownerDiffers), r.concerned))
	}
	if r.limits != nil {
		b = b.WatchesRawSource(watch(r.limits, &v1alpha1.RepairLimits{}, updatedIf[*v1alpha1.RepairLimits](nil), r.concerned))
	}
	return b.Complete(r)
}

// concerned returns the owners that an object concerns.
func (r *ownerReconciler) concerned(ctx context.Context, o client.Object) []remediator.Owner {
	owners, err := r.observer.OwnersFor(ctx, o)
	if err != nil { // the caches are being shut down
		ctrl.LoggerFrom(ctx).Error(err, "finding the owners to reconcile")
	}
	return owners
}

// Reconcile reconciles one owner.
func (r *ownerReconciler) Reconcile(ctx context.Context, owner remediator.Owner) (reconcile.Result, error) {
	again, err := r.runner.Reconcile(ctx, owner)
	return reconcile.Result{RequeueAfter: again}, err
}
