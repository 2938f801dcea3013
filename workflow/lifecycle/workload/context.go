package workload

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
)

// Managed is known from the beginning of every workflow.
type Managed struct {
	sequence.Context
	// Cluster that must be created, upgraded to this version, or deleted.
	Cluster provider.Cluster
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// Reached is known when there is a workload cluster, and the way to it was found.
type Reached struct {
	Managed
	// Workload is the API server of the workload cluster.
	Workload access.ClusterRef
}
