package fair

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Requests is the NewQueue of a controller of objects of a namespace.
func Requests(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return New(name, limiter, func(r reconcile.Request) string { return r.Namespace })
}

// New makes the queue of a controller. The namespaces that have something in it take turns; within one, first in is first out.
func New[T comparable](name string, limiter workqueue.TypedRateLimiter[T], namespace func(T) string) workqueue.TypedRateLimitingInterface[T] {
	order := &order[T]{namespace: namespace, waiting: make(map[string][]T)}
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
			Name:  name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, Queue: order}),
		}),
	})
}

// order is what waits in a queue. The queue locks it.
type order[T comparable] struct {
	namespace func(T) string
	waiting   map[string][]T
	// turn has the namespaces with something that waits, the one whose turn is next first.
	turn []string
	n    int
}

// Touch is called for what waits already: it keeps its place.
func (o *order[T]) Touch(T) {}

func (o *order[T]) Len() int { return o.n }

func (o *order[T]) Push(item T) {
	ns := o.namespace(item)
	if len(o.waiting[ns]) == 0 {
		o.turn = append(o.turn, ns)
	}
	o.waiting[ns] = append(o.waiting[ns], item)
	o.n++
}

// Pop is called only where something waits.
func (o *order[T]) Pop() T {
	ns := o.turn[0]
	item := o.waiting[ns][0]
	o.turn, o.waiting[ns] = o.turn[1:], o.waiting[ns][1:]
	if o.n--; len(o.waiting[ns]) > 0 {
		o.turn = append(o.turn, ns)
	} else {
		delete(o.waiting, ns)
	}
	return item
}
