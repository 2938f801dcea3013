package app

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watch hands on what a part of the view says: to the supervisor, and to the controller.
type watch struct {
	wake     chan struct{}
	queue    chan queue // filled once, when the controller starts
	resource func(id string) types.NamespacedName
}

type queue interface{ Add(reconcile.Request) }

func newWatch(resource func(id string) types.NamespacedName) *watch {
	return &watch{wake: make(chan struct{}, 1), queue: make(chan queue, 1), resource: resource}
}

// changed does not block.
func (w *watch) changed(id string) {
	select {
	case w.wake <- struct{}{}:
	default:
	}
	select {
	case q := <-w.queue:
		q.Add(reconcile.Request{NamespacedName: w.resource(id)})
		w.queue <- q
	default: // not started yet: it will look at every resource when it does
	}
}
