package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/eventlog"
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
)

// Base is the part of a reconciler that does not depend on its kind. Set the fields before use.
type Base struct {
	Client client.Client
	// Live reads from the API server, without the cache.
	Live     client.Reader
	Recorder events.EventRecorder
	Quota    supervise.Quota
	Changes  *Changes[string]
}

// Setup registers a reconciler for the kind of an object. The view must contain all commits that
// the log had at the start: otherwise an object could exist that the view lacks.
func (b *Base) Setup(mgr ctrl.Manager, object client.Object, r reconcile.Reconciler, options controller.Options) error {
	options.NewQueue = fair.NewRequestQueue
	return ctrl.NewControllerManagedBy(mgr).For(object).WithOptions(options).WatchesRawSource(ResourceSource(b.Changes)).Complete(r)
}

// Changes are the keys of changed objects, each once until the controller reads it. Only one
// controller may read them. The zero value is ready for use and safe for concurrent use.
type Changes[K comparable] struct {
	// Delay is how long changes are gathered before a request is enqueued. Set it before use.
	Delay time.Duration

	once  sync.Once
	queue workqueue.TypedInterface[K]
}

func (c *Changes[K]) keys() workqueue.TypedInterface[K] {
	c.once.Do(func() { c.queue = workqueue.NewTyped[K]() })
	return c.queue
}

// Add adds the key of a changed object. It does not block.
func (c *Changes[K]) Add(key K) { c.keys().Add(key) }

// Source enqueues the requests for each change, including changes from before its start.
func Source[K, R comparable](c *Changes[K], requests func(ctx context.Context, key K) []R) source.TypedSource[R] {
	return source.TypedFunc[R](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
		keys := c.keys()
		context.AfterFunc(ctx, keys.ShutDown)
		go func() {
			for key, over := keys.Get(); !over; key, over = keys.Get() {
				for _, request := range requests(ctx, key) {
					q.AddAfter(request, c.Delay) // a request that already waits keeps its time
				}
				keys.Done(key)
			}
		}()
		return nil
	})
}

// ResourceSource returns a Source for IDs of v1alpha1.LogID. It enqueues the resource that requested the object.
func ResourceSource(c *Changes[string]) source.Source {
	return Source(c, func(_ context.Context, id string) []reconcile.Request {
		namespace, rest, _ := strings.Cut(id, "/")
		name, _, _ := strings.Cut(rest, "/")
		if name == "" {
			return nil // not requested by a resource
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
	})
}

// Actor returns the actor name of a resource in the log.
func Actor(key types.NamespacedName) string { return "resource/" + key.String() }

// Objects are the objects in the log that resources of one kind requested. S is their status.
type Objects[S any] interface {
	Status(id string) (S, bool)
	// Recall reads from the log how an object ended that the view no longer contains. It returns
	// false if the object has not ended or does not exist.
	Recall(ctx context.Context, id string) (S, bool, error)
	// Open returns the IDs of unfinished objects that resources with the name requested.
	Open(namespace, name string) []string
	Throttled(id string) supervise.Throttled
}

// LatestStatus returns the status of an object in the view. If the view lacks the object, it may
// have ended: the view removed it, or the log was replaced. The end is then in own, the status of
// the resource, or only in the log if the daemon stopped before it wrote the status. known is false
// if the object was not requested.
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

// RequestError wraps the error of a request to the log; nil stays nil. If the log is full, it
// publishes why the object waits, because the request is retried.
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
