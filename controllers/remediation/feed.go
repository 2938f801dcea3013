package remediation

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

// settle is how long the news of one owner are gathered: a turn appends several facts, and they are told at once.
const settle = 100 * time.Millisecond

// Feed passes what the log says to the controllers that show it, whether this daemon or an operator appended it. The
// zero value is ready for Changed; Cache is set before Run.
type Feed struct {
	// Cache finds the policies and the requests of a namespace.
	Cache client.Reader

	mu    sync.Mutex
	dirty map[remediator.Owner]bool
	wake  chan struct{}

	owners             workqueue.TypedRateLimitingInterface[remediator.Owner]
	requests, policies workqueue.TypedRateLimitingInterface[reconcile.Request]
	limits             workqueue.TypedRateLimitingInterface[reconcile.Request] // nil where there is no such kind
}

// Changed says that the log has something new about an owner. It does not block.
func (f *Feed) Changed(owner remediator.Owner) {
	f.mu.Lock()
	if f.dirty == nil {
		f.dirty = make(map[remediator.Owner]bool)
	}
	f.dirty[owner] = true
	f.signal()
	f.mu.Unlock()
}

// signal wakes Run; mu is held.
func (f *Feed) signal() {
	if f.wake == nil {
		f.wake = make(chan struct{}, 1)
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run queues what is concerned until ctx ends. What came before it ran is told first.
func (f *Feed) Run(ctx context.Context) {
	f.mu.Lock()
	f.signal() // what came before is told now
	wake := f.wake
	f.mu.Unlock()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		}
		pause.Reset(settle)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		f.tell(ctx)
	}
}

func (f *Feed) tell(ctx context.Context) {
	f.mu.Lock()
	dirty, owners, requests, policies, limits := f.dirty, f.owners, f.requests, f.policies, f.limits
	if owners == nil || requests == nil || policies == nil {
		f.mu.Unlock()
		return // into wakes us again
	}
	f.dirty = nil
	f.mu.Unlock()
	if limits != nil { // all of the fleet is counted for them
		limits.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: v1alpha1.RepairLimitsName}}, time.Second)
	}
	namespaces := make(map[string]bool)
	for owner := range dirty {
		namespaces[owner.Namespace] = true
		owners.Add(owner)
	}
	for namespace := range namespaces {
		add(ctx, f.Cache, requests, &v1alpha1.SurgeRemediationList{}, namespace)
		add(ctx, f.Cache, policies, &v1alpha1.RepairPolicyList{}, namespace)
	}
}

// add queues all objects of a kind in a namespace. A cache that cannot be read is being shut down.
func add(ctx context.Context, cache client.Reader, q workqueue.TypedRateLimitingInterface[reconcile.Request], list client.ObjectList, namespace string) {
	if cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
		return
	}
	for _, key := range keys(list) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

func keys(list client.ObjectList) (all []client.ObjectKey) {
	switch l := list.(type) {
	case *v1alpha1.SurgeRemediationList:
		for i := range l.Items {
			all = append(all, client.ObjectKeyFromObject(&l.Items[i]))
		}
	case *v1alpha1.RepairPolicyList:
		for i := range l.Items {
			all = append(all, client.ObjectKeyFromObject(&l.Items[i]))
		}
	}
	return all
}

// into hands a controller's queue to the feed when the controller starts.
func into[T comparable](f *Feed, at *workqueue.TypedRateLimitingInterface[T]) source.TypedSource[T] {
	return source.TypedFunc[T](func(_ context.Context, q workqueue.TypedRateLimitingInterface[T]) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		*at = q
		f.signal()
		return nil
	})
}
