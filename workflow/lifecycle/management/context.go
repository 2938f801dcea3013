package management

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
}

// CreateBootstrapped is known when there is a bootstrap cluster.
type CreateBootstrapped struct {
	CreateContext
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}

// CreateManaged is known when there is a management cluster beside the bootstrap cluster.
type CreateManaged struct {
	CreateBootstrapped
	// Management is the API server of the new management cluster.
	Management access.ClusterRef
}

// CreateDone is what is left when the bootstrap cluster is gone.
type CreateDone struct {
	CreateContext
	// Management is the API server of the new management cluster, which manages itself.
	Management access.ClusterRef
}

// UpgradeContext is known from the beginning of Upgrade, and at its end.
type UpgradeContext struct {
	sequence.Context
	// Cluster with the version to come.
	Cluster provider.Cluster
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// UpgradeBootstrapped is known while there is a bootstrap cluster.
type UpgradeBootstrapped struct {
	UpgradeContext
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}

// DeleteContext is known from the beginning of Delete.
type DeleteContext struct {
	sequence.Context
	// Cluster that must be deleted.
	Cluster provider.Cluster
	// Management is the API server of the management cluster.
	Management access.ClusterRef
}

// DeleteBootstrapped is known when there is a bootstrap cluster.
type DeleteBootstrapped struct {
	DeleteContext
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}

// DeleteRemnant is what is left when the management cluster is gone.
type DeleteRemnant struct {
	sequence.Context
	Cluster provider.Cluster
	// Bootstrap is the API server of the bootstrap cluster.
	Bootstrap access.ClusterRef
}

// DeleteDone is what is left when the bootstrap cluster is gone too.
type DeleteDone struct {
	sequence.Context
	Cluster provider.Cluster
}
