package workload

import (
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// Managed is the first context of every workflow.
type Managed struct {
	provider.Context
	// Cluster is the cluster to create, upgrade or delete. In an upgrade it has the new version.
	Cluster    provider.Cluster
	Management access.ClusterRef
}

// Connected is the context once the workload cluster exists and its API server is known.
type Connected struct {
	Managed
	Workload access.ClusterRef
}

func (c *Managed) target() provider.Target { return c.Target(c.Management, c.Cluster) }

func (c *Connected) workload() provider.Target { return c.Target(c.Workload, c.Cluster) }

// CreateProvider contains the interfaces that the create workflow requires of a provider. The
// components are installed on the workload cluster.
type CreateProvider interface {
	provider.ComponentInstaller
	provider.NetworkInstaller
	provider.Converter
}

// UpgradeProvider contains the interfaces that the upgrade workflow requires of a provider.
type UpgradeProvider interface {
	provider.ComponentUpgrader
	provider.NetworkUpgrader
	provider.Upgrader
}

// DeleteProvider has no methods: the delete workflow requires nothing. A provider may implement
// provider.Cleaner.
type DeleteProvider any

// HookRegistrar binds hooks to the tasks of the workflows. It must bind the same hooks each time,
// because a workflow is constructed again when its run is resumed.
type HookRegistrar interface {
	// Name is the prefix of its hooks' names in the log: lower case letters, digits and dashes.
	Name() string
	BindWorkloadCreate(b *hook.Binder) error
	BindWorkloadUpgrade(b *hook.Binder) error
	BindWorkloadDelete(b *hook.Binder) error
}

// NoopHookRegistrar binds nothing. Embed it to implement only some of the methods.
type NoopHookRegistrar struct{}

// BindWorkloadCreate binds nothing.
func (NoopHookRegistrar) BindWorkloadCreate(*hook.Binder) error { return nil }

// BindWorkloadUpgrade binds nothing.
func (NoopHookRegistrar) BindWorkloadUpgrade(*hook.Binder) error { return nil }

// BindWorkloadDelete binds nothing.
func (NoopHookRegistrar) BindWorkloadDelete(*hook.Binder) error { return nil }
