package provider

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// skip is an annotation that stops the out-of-band reconciler, as serviceoperator.azure.com/reconcile-policy does.
const skip = Group + "/skip"

// running is the status field in which the out-of-band reconciler reports whether it is active.
const running = "running"

// slow is the provider's controller. When the Cluster is paused, it stops the out-of-band reconciler, sets block-move
// on the object until it has stopped, and acknowledges the pause.
type slow struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (r *slow) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := empty(SlowKind)
	if err := r.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cluster := &clusterv1.Cluster{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !annotations.IsPaused(cluster, o) {
		if err := annotate(ctx, r, o, map[string]bool{clusterctlv1.BlockMoveAnnotation: true, skip: false}); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, report(ctx, r, o, map[string]any{"conditions": paused("False")})
	}
	if err := annotate(ctx, r, o, map[string]bool{skip: true}); err != nil {
		return reconcile.Result{}, err
	}
	if acts, told, _ := unstructured.NestedBool(o.Object, "status", running); acts || !told {
		return reconcile.Result{}, nil // the status is watched
	}
	if err := report(ctx, r, o, map[string]any{"conditions": paused("True")}); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, annotate(ctx, r, o, map[string]bool{clusterctlv1.BlockMoveAnnotation: false})
}

// outOfBand acts on the cloud for each object, whether its Cluster is paused or not, until the object has the
// annotation skip and the current work is done.
type outOfBand struct {
	client.Client
	Options

	mu      sync.Mutex
	working map[string]time.Time // when the work ends, by name; zero if it has no end
}

// between is the time between two acts.
const between = 50 * time.Millisecond

// Reconcile implements reconcile.Reconciler.
func (r *outOfBand) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, name := empty(SlowKind), req.String()
	if err := r.Get(ctx, req.NamespacedName, o); err != nil {
		r.end(name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.acts(name, o.GetAnnotations()[skip] != "") {
		return reconcile.Result{}, report(ctx, r, o, map[string]any{running: false})
	}
	if err := report(ctx, r, o, map[string]any{running: true}); err != nil {
		return reconcile.Result{}, err
	}
	r.Cloud.act(r.Side, name)
	return reconcile.Result{RequeueAfter: between}, nil
}

// acts reports whether the reconciler must act. It begins no new work for an object that has the annotation skip.
func (r *outOfBand) acts(name string, skipped bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, working := r.working[name]
	switch {
	case !skipped:
		r.working[name] = time.Time{}
		return true
	case !working:
		return false
	case until.IsZero():
		r.working[name] = time.Now().Add(r.Stop)
		return true
	case time.Now().Before(until):
		return true
	default:
		delete(r.working, name)
		return false
	}
}

func (r *outOfBand) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.working, name)
}
