package resource

import (
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
)

// Base is the part of a reconciler that does not depend on the kind of its resource. Its fields are set before use and not changed.
type Base struct {
	Client client.Client
	// Live reads from the API server, without the cache.
	Live     client.Reader
	Recorder events.EventRecorder
	// Quota is the quota of each namespace.
	Quota supervise.Quota
	// CaughtUp is closed when the view contains all commits that the log had at the start. Before, an object that is missing in the view may exist.
	CaughtUp <-chan struct{}
	// Changes are the IDs of the objects that have changed in the view.
	Changes *Changes[string]

	wait Wait
}

// Setup registers a reconciler of the kind of an object.
func (b *Base) Setup(mgr ctrl.Manager, object client.Object, r reconcile.Reconciler, options controller.Options) error {
	options.NewQueue = fair.NewRequestQueue
	return ctrl.NewControllerManagedBy(mgr).For(object).WithOptions(options).WatchesRawSource(ResourceSource(b.Changes)).Complete(r)
}

// Behind reports whether a reconcile must wait until the view has caught up, and for how long until the next check.
func (b *Base) Behind() (pause time.Duration, behind bool) { return b.wait.Delay(b.CaughtUp) }
