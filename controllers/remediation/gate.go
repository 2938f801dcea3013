package remediation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/timespan"
	"scute.dev/remediator"
)

const (
	// cacheRetryInterval is the delay before the start is retried while caches are not synced, missing the delay while Cluster API is not installed.
	cacheRetryInterval, installRetryInterval = 200 * time.Millisecond, 30 * time.Second
)

// Gate starts the remediator when the first RepairPolicy appears. Until then the only cost is one watch of that kind. The remediator keeps running
// without a policy, because remediations that a deleted policy started must still be cancelled.
type Gate struct {
	Client client.Client
	// Due returns the owners with a remediation in progress in the log: they are reconciled even without a policy.
	Due func() []remediator.Owner
	// Start performs the next step of the start. missing names what is not installed; done reports that everything runs.
	Start func(ctx context.Context) (done bool, missing string, err error)

	open bool // used by the only worker
}

// SetupWithManager registers the controller.
func (r *Gate) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("remediator").
		For(&v1alpha1.RepairPolicy{}).
		WithOptions(controllerOptions(1)).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(reconcile.Request{}) // for owners that are due without a policy
			return nil
		})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the start of the remediator: %w", err)
	}
	return nil
}

// Reconcile starts the remediator if it is needed and not running.
func (r *Gate) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.open {
		return ctrl.Result{}, nil
	}
	p := &v1alpha1.RepairPolicy{}
	if req.Name == "" {
		if len(r.Due()) == 0 {
			return ctrl.Result{}, nil
		}
	} else if err := r.Client.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	done, without, err := r.Start(ctx)
	switch {
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("starting the remediator: %w", err)
	case done:
		r.open = true
		return ctrl.Result{}, nil
	case without == "":
		return ctrl.Result{RequeueAfter: cacheRetryInterval}, nil
	case req.Name == "":
		return ctrl.Result{RequeueAfter: installRetryInterval}, nil
	default:
		return ctrl.Result{RequeueAfter: installRetryInterval}, r.reportMissing(ctx, p, without)
	}
}

// reportMissing records in a policy's status why the remediator cannot start.
func (r *Gate) reportMissing(ctx context.Context, p *v1alpha1.RepairPolicy, without string) error {
	after := p.DeepCopy()
	message := without + ": scute checks again every " + timespan.Text(installRetryInterval)
	after.Status.ObservedGeneration, after.Status.Message = p.Generation, message
	after.Status.Conditions = resource.Kstatus(p.Status.Conditions, p.Generation, "NotInstalled",
		resource.Value{Message: message}, resource.Value{}, resource.Value{True: true, Message: message})
	_, err := resource.Write(ctx, r.Client, p, after)
	return err
}
