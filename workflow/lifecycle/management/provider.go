package management

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// CreateProvider is the provider interface of the create workflow.
type CreateProvider interface {
	provider.ComponentInstaller
	provider.NetworkInstaller
	provider.Converter
	Configurer
}

// UpgradeProvider is the provider interface of the upgrade workflow.
type UpgradeProvider interface {
	provider.ComponentInstaller
	provider.ComponentUpgrader
	provider.NetworkUpgrader
	provider.Upgrader
}

// DeleteProvider is the provider interface of the delete workflow. A provider may also implement provider.Cleaner.
type DeleteProvider interface {
	provider.ComponentInstaller
}

// Configurer installs the user's configuration on the cluster, which manages itself by then. The rules of package provider apply to its methods.
type Configurer interface {
	InstallConfiguration(c *provider.Context, on access.ClusterRef) error
	UninstallConfiguration(c *provider.Context, on access.ClusterRef) error
}
