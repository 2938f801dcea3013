package remediation

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/remediator"
)

// ownerDelay is how long changes of owners are collected, because one reconciliation appends several facts. limitsDelay is longer, because the limits
// count the whole fleet.
const ownerDelay, limitsDelay = 100 * time.Millisecond, time.Second

// EventSource notifies the controllers of changes in the log about owners of machines, whether this daemon or an operator appended them. It is
// created by NewEventSource.
type EventSource struct {
	owners                     resource.Changes[remediator.Owner]
	requests, policies, limits resource.Changes[string] // by namespace
}

// NewEventSource returns a source that is ready for Changed.
func NewEventSource() *EventSource {
	f := &EventSource{}
	f.owners.Delay, f.requests.Delay, f.policies.Delay, f.limits.Delay = ownerDelay, ownerDelay, ownerDelay, limitsDelay
	return f
}

// Changed notifies the controllers that the log has new events about an owner. It does not block.
func (f *EventSource) Changed(owner remediator.Owner) {
	f.owners.Add(owner)
	f.requests.Add(owner.Namespace)
	f.policies.Add(owner.Namespace)
	f.limits.Add("")
}

// namespaceSource queues all objects of a kind in the namespaces that changed. A cache that cannot be read is being shut down.
func namespaceSource(c *resource.Changes[string], cache client.Reader, kind client.ObjectList) source.Source {
	return resource.Source(c, func(ctx context.Context, namespace string) []reconcile.Request {
		return requestsIn(ctx, cache, kind, namespace)
	})
}

// limitsSource queues the RepairLimits.
func limitsSource(c *resource.Changes[string]) source.Source {
	return resource.Source(c, func(context.Context, string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: v1alpha1.RepairLimitsName}}}
	})
}

// requestsIn returns requests for all objects of a kind in a namespace.
func requestsIn(ctx context.Context, cache client.Reader, kind client.ObjectList, namespace string) (all []reconcile.Request) {
	list, ok := kind.DeepCopyObject().(client.ObjectList)
	if !ok || cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if o, ok := o.(client.Object); ok {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
		return nil
	})
	return all
}
