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
	"scute.dev/controllers/catchup"
	"scute.dev/controllers/changes"
	"scute.dev/internal/fair"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// A turn that failed comes again after so long, and at the latest after so long.
const firstRetry, lastRetry = 200 * time.Millisecond, time.Minute

// Owners finds whose turn it is when an object changed, from caches alone; *observe.Observer does.
type Owners interface {
	OwnersFor(ctx context.Context, o client.Object) ([]remediator.Owner, error)
}

// OwnerReconciler gives each owner of machines its turn when something about it changed.
type OwnerReconciler struct {
	Cache  cache.Cache
	Owners Owners
	// Turn takes one look at an owner, and does what follows from it; again is when to look though nothing changes.
	ReconcileOwner func(ctx context.Context, owner remediator.Owner) (again time.Duration, err error)
	// CaughtUp is closed when the view holds all that the log held at the start: before that no turn is taken.
	CaughtUp <-chan struct{}
	behind   catchup.Wait
	// Concurrency is how many owners have their turn at once.
	Concurrency int
	// Kinds of owners that the API server serves.
	Kinds []ownerkind.Kind
	// Limits is the cache that holds the RepairLimits; nil where there is no such kind.
	Limits cache.Cache
	// EventSource says when the log has something new about an owner.
	Events *EventSource
}

// fairByNamespace: the control planes of one namespace, many of them silent, leave the workers to others in turn.
func fairByNamespace(name string, limiter workqueue.TypedRateLimiter[remediator.Owner]) workqueue.TypedRateLimitingInterface[remediator.Owner] {
	return fair.New(name, limiter, func(o remediator.Owner) string { return o.Namespace })
}

// SetupWithManager registers the controller. The caches are synced before.
func (r *OwnerReconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := builder.TypedControllerManagedBy[remediator.Owner](mgr).Named("remediation").
		WithOptions(controller.TypedOptions[remediator.Owner]{
			MaxConcurrentReconciles: r.Concurrency, // the runner bounds the time of each
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[remediator.Owner](firstRetry, lastRetry), NewQueue: fairByNamespace,
		}).
		WatchesRawSource(changes.Source(&r.Events.owners, func(_ context.Context, o remediator.Owner) []remediator.Owner { return []remediator.Owner{o} })).
		WatchesRawSource(concerns(r, r.Cache, &clusterv1.Machine{}, machineDiffers)).
		WatchesRawSource(concerns(r, r.Cache, &clusterv1.Cluster{}, clusterDiffers)).
		WatchesRawSource(concerns(r, r.Cache, &v1alpha1.SurgeRemediation{}, same)).
		WatchesRawSource(concerns(r, r.Cache, &v1alpha1.RepairPolicy{}, same))
	for _, kind := range r.Kinds {
		b = b.WatchesRawSource(concerns(r, r.Cache, kind.New(), ownerDiffers))
	}
	if r.Limits != nil {
		b = b.WatchesRawSource(concerns(r, r.Limits, &v1alpha1.RepairLimits{}, same))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("preparing the turns of owners: %w", err)
	}
	return nil
}

// concerns watches a kind in a cache, and queues the owners whose turn it is when an object of it changed.
func concerns[T client.Object](r *OwnerReconciler, watched cache.Cache, kind T, differs func(before, after T) bool) source.TypedSyncingSource[remediator.Owner] {
	owners := func(ctx context.Context, o T) []remediator.Owner { // of both objects of an update: also the previous owner
		owners, err := r.Owners.OwnersFor(ctx, o)
		if err != nil { // of caches that are being shut down
			ctrl.LoggerFrom(ctx).Error(err, "finding whose turn it is")
		}
		return owners
	}
	return source.TypedKind(watched, kind, handler.TypedEnqueueRequestsFromMapFunc(owners), when(differs))
}

// Reconcile takes one owner's turn.
func (r *OwnerReconciler) Reconcile(ctx context.Context, owner remediator.Owner) (reconcile.Result, error) {
	if pause, wait := r.behind.Later(r.CaughtUp); wait {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	again, err := r.ReconcileOwner(ctx, owner)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}
