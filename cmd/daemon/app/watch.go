package app

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watch hands on to a controller what a part of the view says.
type watch struct {
	resource func(id string) types.NamespacedName

	mu    sync.RWMutex
	queue queue // nil until the controller starts
}

type queue interface{ Add(reconcile.Request) }

func newWatch(resource func(id string) types.NamespacedName) *watch {
	return &watch{resource: resource}
}

// started takes the controller's queue.
func (w *watch) started(q queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = q
}

// changed does not block. The projector and everything that is driven call it.
func (w *watch) changed(id string) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.queue != nil { // else it will look at every resource when it starts
		w.queue.Add(reconcile.Request{NamespacedName: w.resource(id)})
	}
}
