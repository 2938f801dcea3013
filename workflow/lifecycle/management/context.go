package management

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
)

// Specified is known while there is neither a bootstrap cluster nor a management cluster: at the beginning of Create and at
// the end of Delete.
type Specified struct {
	sequence.Context
	// Cluster that must be created, upgraded to this version, or deleted.
	Cluster provider.Cluster
}

// Bootstrapped is known while there is only the bootstrap cluster.
type Bootstrapped struct {
	Specified
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}

// Managed is known while there is only the management cluster, which manages itself.
type Managed struct {
	Specified
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// Paired is known while there are both: the cluster is managed by one of them.
type Paired struct {
	Managed
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}
