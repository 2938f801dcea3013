package sequence

import (
	"context"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Context is one attempt of one step. The typed contexts of the workflows embed it.
type Context struct {
	context.Context //nolint:containedctx // the one context of the attempt, as the typed contexts' whole point is

	call     *task.Call
	clusters *access.Clusters
}

// NewContext is the context of an attempt, for those who call a provider outside of a sequence.
func NewContext(ctx context.Context, call *task.Call, clusters *access.Clusters) Context {
	return Context{Context: ctx, call: call, clusters: clusters}
}

// enter makes a typed context that of an attempt.
func (c *Context) enter(ctx context.Context, call *task.Call, clusters *access.Clusters) {
	*c = NewContext(ctx, call, clusters)
}

type enterer interface {
	enter(ctx context.Context, call *task.Call, clusters *access.Clusters)
}

// Call is the attempt.
func (c *Context) Call() *task.Call { return c.call }

// Failure is what failed, for a handler of failures; nil for all others.
func (c *Context) Failure() *task.Failure { return c.call.Failure }

// Local says that the run acts with the operator's own credentials and files.
func (c *Context) Local() bool { return c.clusters.Local }

// Open prepares clients for an API server.
func (c *Context) Open(ref access.ClusterRef) (*access.Cluster, error) {
	return c.clusters.Open(c.Context, c.call, ref)
}

// OnlyWaits says that from now on the attempt does little more than look whether something has happened: other runs may work in its
// place. Perform and Revert get the place back first; what does more than a few requests by itself calls WorksAgain.
func (c *Context) OnlyWaits() { c.call.OnlyWaits() }

// WorksAgain waits for the place after OnlyWaits, or until the context ends.
func (c *Context) WorksAgain() error { return c.call.WorksAgain(c.Context) }

// Progress says in a sentence what the attempt waits for. It does not block.
func (c *Context) Progress(message string) {
	if c.call.Progress != nil {
		c.call.Progress(message)
	}
}
