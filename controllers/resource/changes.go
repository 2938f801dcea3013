package resource

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Changes are the keys of changed objects, each once until the controller reads it. Only one controller reads them. The zero value is ready for use,
// and it is safe for concurrent use.
type Changes[K comparable] struct {
	// Delay is how long changes are gathered before they are enqueued. It is set before use.
	Delay time.Duration

	mu      sync.Mutex
	changed map[K]bool
	wake    chan struct{}
}

// Add adds the key of a changed object. It does not block.
func (c *Changes[K]) Add(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(map[K]bool)
	}
	c.changed[key] = true
	select {
	case c.signal() <- struct{}{}:
	default:
	}
}

// signal returns the channel that is notified of changes. mu is held.
func (c *Changes[K]) signal() chan struct{} {
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	return c.wake
}

// run calls fn with each change, including those from before the call, until ctx ends.
func (c *Changes[K]) run(ctx context.Context, fn func(K)) {
	c.mu.Lock()
	wake := c.signal()
	c.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.Delay):
		}
		c.mu.Lock()
		changed := c.changed
		c.changed = nil
		c.mu.Unlock()
		for key := range changed {
			fn(key)
		}
	}
}

// Source enqueues the requests for each change.
func Source[K, R comparable](c *Changes[K], requests func(ctx context.Context, key K) []R) source.TypedSource[R] {
	return source.TypedFunc[R](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
		go c.run(ctx, func(key K) {
			for _, request := range requests(ctx, key) {
				q.Add(request)
			}
		})
		return nil
	})
}

// ResourceSource returns the Source for IDs with the prefix of v1alpha1.LogID: it enqueues the resource that requested the changed object.
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
