package provider

import (
	"context"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Context is the context of one attempt at one step. The typed contexts of the workflows embed it.
type Context struct {
	context.Context //nolint:containedctx // a typed context contains the context of its attempt

	call     *task.Call
	clusters *access.Clusters
}

// NewContext returns the context of an attempt for callers of a provider outside of a workflow.
func NewContext(ctx context.Context, call *task.Call, clusters *access.Clusters) Context {
	return Context{Context: ctx, call: call, clusters: clusters}
}

func (c *Context) base() *Context { return c }

// Call returns the call of the attempt.
func (c *Context) Call() *task.Call { return c.call }

// Failure returns the failure that a failure handler handles; nil for other steps.
func (c *Context) Failure() *task.Failure { return c.call.Failure }

// Local reports whether the run uses the operator's own credentials and files.
func (c *Context) Local() bool { return c.clusters.Local }

// Target returns a cluster as seen on its manager.
func (c *Context) Target(manager access.ClusterRef, cluster Cluster) Target {
	return Target{Context: c, Manager: manager, Cluster: cluster}
}

// Open returns clients for an API server.
func (c *Context) Open(ref access.ClusterRef) (*access.Cluster, error) {
	return c.clusters.Open(c.Context, c.call, ref)
}

// YieldSlot lets other runs use the attempt's slot while the attempt only polls. Perform and Revert
// acquire it again. A step that makes more than a few requests itself must call ReacquireSlot.
func (c *Context) YieldSlot() { c.call.YieldSlot() }

// ReacquireSlot acquires the slot again after YieldSlot. It returns an error if the context ends first.
func (c *Context) ReacquireSlot() error { return c.call.ReacquireSlot(c.Context) }

// Progress records a sentence that describes what the attempt is waiting for. It does not block.
func (c *Context) Progress(message string) {
	if c.call.Progress != nil {
		c.call.Progress(message)
	}
}
