package workload

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// Managed is the context from the beginning of every workflow.
type Managed struct {
	provider.Context
	// Cluster is the cluster to create, to upgrade to this version, or to delete.
	Cluster provider.Cluster
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// Connected is the context once the workload cluster exists and its API server is known.
type Connected struct {
	Managed
	// Workload is the API server of the workload cluster.
	Workload access.ClusterRef
}

// target returns the cluster, which the management cluster manages.
func (c *Managed) target() provider.Target {
	return provider.Target{Context: &c.Context, Manager: c.Management, Cluster: c.Cluster}
}

// workload returns the cluster at its own API server.
func (c *Connected) workload() provider.Target {
	return provider.Target{Context: &c.Context, Manager: c.Workload, Cluster: c.Cluster}
}
