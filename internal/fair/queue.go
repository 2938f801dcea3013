package fair

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewRequestQueue returns a NewQueue for a controller of namespaced objects. Use it in
// controller.Options.
func NewRequestQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return NewQueue(name, limiter, func(r reconcile.Request) string { return r.Namespace })
}

// NewQueue returns the queue of a controller, in which namespaces take turns. Within a namespace it
// is first in, first out.
func NewQueue[T comparable](name string, limiter workqueue.TypedRateLimiter[T], namespace func(T) string) workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
			Name:  name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, Queue: newOrder(namespace)}),
		}),
	})
}
