package workload

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
)

// CreateContext is known from the beginning of Create.
type CreateContext struct {
	sequence.Context
	// Cluster that must be created.
	Cluster provider.Cluster
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// CreateReached is known when there is a workload cluster.
type CreateReached struct {
	CreateContext
	// Workload is the API server of the workload cluster.
	Workload access.ClusterRef
}

// UpgradeContext is known from the beginning of Upgrade.
type UpgradeContext struct {
	sequence.Context
	// Cluster with the version to come.
	Cluster provider.Cluster
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// UpgradeReached is known when the way to the workload cluster was found.
type UpgradeReached struct {
	UpgradeContext
	// Workload is the API server of the workload cluster.
	Workload access.ClusterRef
}

// DeleteContext is known throughout Delete.
type DeleteContext struct {
	sequence.Context
	// Cluster that must be deleted.
	Cluster provider.Cluster
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}
