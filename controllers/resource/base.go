package resource

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/eventlog"
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
	// Changes are the IDs of the objects that have changed in the view.
	Changes *Changes[string]
}

// Setup registers a reconciler of the kind of an object. The view must contain all commits that the log had at the start: otherwise an object that is
// missing in the view may exist.
func (b *Base) Setup(mgr ctrl.Manager, object client.Object, r reconcile.Reconciler, options controller.Options) error {
	options.NewQueue = fair.NewRequestQueue
	return ctrl.NewControllerManagedBy(mgr).For(object).WithOptions(options).WatchesRawSource(ResourceSource(b.Changes)).Complete(r)
}

// Objects are the objects in the log that the resources of a kind requested, with a status of type S.
type Objects[S any] interface {
	Status(id string) (S, bool)
	// Recall reads from the log how an object ended that the view no longer contains. It returns false if the object has not ended or does not exist.
	Recall(ctx context.Context, id string) (S, bool, error)
	// Open returns the IDs of the objects that resources of a name requested and that have not ended.
	Open(namespace, name string) []string
	Throttled(id string) supervise.Throttled
}

// LatestStatus returns the status of an object from the view. If the view does not contain the
// object, it may have ended: the view has deleted it, or it ended in another log. The end is then
// in own, the status of the resource, or only in the log if the daemon stopped before it could
// write the status. known is false if the object was not requested.
func LatestStatus[S any](
	ctx context.Context, objects Objects[S], id string, own *S, ended bool,
) (status S, known bool, err error) {
	if status, known = objects.Status(id); known {
		return status, true, nil
	}
	if ended {
		return *own, true, nil
	}
	if status, known, err = objects.Recall(ctx, id); err != nil {
		return status, false, fmt.Errorf("reading %s from the log: %w", id, err)
	}
	return status, known, nil
}

// RequestError returns the error of a request to the log; nil if err is nil. If the log is full, it publishes why the object waits, because the request
// is retried.
func RequestError(err error, publish func(message, next string) error) error {
	if err == nil {
		return nil
	}
	failed := fmt.Errorf("recording the request: %w", err)
	if errors.Is(err, eventlog.ErrFull) {
		waiting := "waiting: " + TruncateNote(err.Error())
		return errors.Join(failed, publish(waiting, "raise the limit of the event log (log.maxBytes of the chart)"))
	}
	return failed
}
