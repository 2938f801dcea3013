package management

import (
	"scute.dev/workflow/lifecycle/hook"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// Specified is the context while neither a bootstrap cluster nor a management cluster exists: at
// the beginning of the create workflow and at the end of the delete workflow.
type Specified struct {
	provider.Context
	// Cluster is the cluster to create, upgrade or delete. In an upgrade it has the new version.
	Cluster provider.Cluster
}

// Bootstrapped is the context while only the bootstrap cluster exists.
type Bootstrapped struct {
	Specified
	Bootstrap access.ClusterRef
}

// Managed is the context while only the management cluster exists, which manages itself.
type Managed struct {
	Specified
	Management access.ClusterRef
}

// Paired is the context while both the bootstrap cluster and the management cluster exist. Either
// may hold the management cluster's Cluster API objects.
type Paired struct {
	Managed
	Bootstrap access.ClusterRef
}

func (c *Bootstrapped) onBootstrap() provider.Target { return c.Target(c.Bootstrap, c.Cluster) }

func (c *Paired) onBootstrap() provider.Target { return c.Target(c.Bootstrap, c.Cluster) }

func (c *Managed) onManagement() provider.Target { return c.Target(c.Management, c.Cluster) }

// CreateProvider contains the interfaces that the create workflow requires of a provider.
type CreateProvider interface {
	provider.ComponentInstaller
	provider.NetworkInstaller
	provider.Converter
	Configurer
}

// UpgradeProvider contains the interfaces that the upgrade workflow requires of a provider.
type UpgradeProvider interface {
	provider.ComponentInstaller
	provider.ComponentUpgrader
	provider.NetworkUpgrader
	provider.Upgrader
}

// DeleteProvider contains the interfaces that the delete workflow requires of a provider. The
// provider may also implement provider.Cleaner.
type DeleteProvider interface {
	provider.ComponentInstaller
}

// Configurer installs the user's configuration on the cluster, which already manages itself. The
// rules of package provider apply to its methods.
type Configurer interface {
	InstallConfiguration(c *provider.Context, on access.ClusterRef) error
	UninstallConfiguration(c *provider.Context, on access.ClusterRef) error
}

// HookRegistrar binds hooks to the tasks of the workflows. It must bind the same hooks each time,
// because a workflow is constructed again when its run is resumed.
type HookRegistrar interface {
	// Name is the prefix of its hooks' names in the log: lower case letters, digits and dashes.
	Name() string
	BindManagementCreate(b *hook.Binder) error
	BindManagementUpgrade(b *hook.Binder) error
	BindManagementDelete(b *hook.Binder) error
}

// NoopHookRegistrar binds nothing. Embed it to implement only some of the methods.
type NoopHookRegistrar struct{}

// BindManagementCreate binds nothing.
func (NoopHookRegistrar) BindManagementCreate(*hook.Binder) error { return nil }

// BindManagementUpgrade binds nothing.
func (NoopHookRegistrar) BindManagementUpgrade(*hook.Binder) error { return nil }

// BindManagementDelete binds nothing.
func (NoopHookRegistrar) BindManagementDelete(*hook.Binder) error { return nil }
