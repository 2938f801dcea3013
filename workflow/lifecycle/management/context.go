package management

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// Specified is the context while neither a bootstrap cluster nor a management cluster exists: at the beginning of the create workflow and at the end
// of the delete workflow.
type Specified struct {
	provider.Context
	// Cluster is the cluster to create, to upgrade to this version, or to delete.
	Cluster provider.Cluster
}

// Bootstrapped is the context while only the bootstrap cluster exists.
type Bootstrapped struct {
	Specified
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}

// Managed is the context while only the management cluster exists, which manages itself.
type Managed struct {
	Specified
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// Paired is the context while both exist. One of them manages the cluster.
type Paired struct {
	Managed
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}

// onBootstrap returns the cluster while the bootstrap cluster manages it.
func (c *Bootstrapped) onBootstrap() provider.Target {
	return provider.Target{Context: &c.Context, Manager: c.Bootstrap, Cluster: c.Cluster}
}

func (c *Paired) onBootstrap() provider.Target {
	return provider.Target{Context: &c.Context, Manager: c.Bootstrap, Cluster: c.Cluster}
}

// onManagement returns the cluster while it manages itself.
func (c *Managed) onManagement() provider.Target {
	return provider.Target{Context: &c.Context, Manager: c.Management, Cluster: c.Cluster}
}
