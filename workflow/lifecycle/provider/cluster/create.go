package cluster

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Create makes a cluster of the objects that the provider converts its specification to, waits until its control plane takes
// requests, and keeps the way to its API server. One that exists is not downgraded, and not scaled by numbers that nobody has given.
func Create(c *sequence.Context, p provider.Converter, apply task.Kind, folder string, manager access.ClusterRef, spec provider.Cluster) (provider.Access, error) {
	s, err := lookThrough(c, manager, spec)
	if err != nil {
		return provider.Access{}, err
	}
	wanted := spec
	if s.Object != nil && s.Object.GetDeletionTimestamp() == nil {
		if err := downgrade(s, spec, "params.cluster.version"); err != nil {
			return provider.Access{}, err
		}
		wanted = sized(s, spec)
	}
	objects, err := p.ClusterObjects(c, wanted)
	if err != nil {
		return provider.Access{}, err
	}
	if err := applyObjects(c, apply, manager, spec, objects); err != nil {
		return provider.Access{}, err
	}
	// Its nodes need not be ready: they are only when there is a network.
	if err := wait(c, manager, spec, "to be initialized", uninitialized, lost); err != nil {
		return provider.Access{}, err
	}
	return Keep(c, p, folder, manager, spec)
}

// Uncreate is the inverse of Create. The way to a cluster that was there before is kept: a Secret may be that of the run that has made it.
func Uncreate(c *sequence.Context, apply task.Kind, folder string, manager access.ClusterRef, spec provider.Cluster) error {
	made, err := removeObjects(c, apply, manager, spec)
	if err != nil || !made && !c.Local() {
		return err
	}
	return Forget(c, folder, manager, spec)
}
